package identity

import "slices"

// descendantsOf lists all processes with pid as an ancestor, nearest first, without pid
// itself. A list that was read while processes came and went may have a cycle of parents; no
// process is visited twice.
func below(all []Stat, pid int) []Stat {
	children := make(map[int][]int, len(all))
	for i, s := range all {
		children[s.PPID] = append(children[s.PPID], i)
	}
	var found []Stat
	seen := map[int]bool{pid: true}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, i := range children[queue[0]] {
			if s := all[i]; !seen[s.PID] {
				seen[s.PID] = true
				found = append(found, s)
				queue = append(queue, s.PID)
			}
		}
	}
	return slices.Clip(found)
}
