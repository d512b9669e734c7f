package identity

import (
	"bytes"
	"os"
	"strconv"
)

// offspring follows the lists that the kernel keeps of each thread's children.
func (p Proc) offspring(pid int) ([]Stat, error) {
	if _, err := os.Lstat(p.path(pid, "task/"+strconv.Itoa(pid)+"/children")); err != nil {
		return p.Descendants(pid) // a kernel without lists, or nobody there
	}
	var found []Stat
	seen := map[int]bool{pid: true}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range p.children(queue[0]) {
			if seen[child] {
				continue
			}
			seen[child] = true
			if s, err := p.stat(child); err == nil {
				found = append(found, s)
				queue = append(queue, child)
			}
		}
	}
	return found, nil
}

// children is empty for a process that has ended.
func (p Proc) children(pid int) []int {
	threads, err := numbers(p.path(pid, "task"))
	if err != nil {
		return nil
	}
	var list []int
	var room [4096]byte
	for _, tid := range threads {
		path := p.path(pid, "task/"+strconv.Itoa(tid)+"/children")
		text, err := small(path, room[:])
		if len(text) == len(room) { // there may be more
			text, err = os.ReadFile(path)
		}
		if err != nil {
			continue // the thread has ended; its children have another parent
		}
		for word := range bytes.FieldsSeq(text) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}
