package identity

import (
	"os"
	"strconv"
)

// Offspring is Descendants by the kernel's lists of children, at the cost of the tree instead
// of the machine. A list that is read while a child ends may lack one of its siblings: enough
// for a check that is repeated, no proof that no process is left. Without such lists it is
// Descendants.
func (p Proc) Offspring(pid int) ([]Stat, error) {
	if _, err := os.Lstat(p.path(pid, "task/"+strconv.Itoa(pid)+"/children")); err != nil {
		return p.Descendants(pid) // a kernel without lists, or no such process
	}
	var found []Stat
	seen := map[int]bool{pid: true}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range p.children(queue[0]) {
			if seen[child] {
				continue
			}
			seen[child] = true
			if s, err := p.Stat(child); err == nil {
				found = append(found, s)
				queue = append(queue, child)
			}
		}
	}
	return found, nil
}

// childPIDs is empty for a process that has ended, and lacks the children of a thread that
// has: they have another parent.
func (p Proc) children(pid int) []int {
	threads, err := numbers(p.path(pid, "task"))
	if err != nil {
		return nil
	}
	var list []int
	for _, tid := range threads {
		list = appendChildren(list, p.path(pid, "task/"+strconv.Itoa(tid)+"/children"))
	}
	return list
}

func appendChildren(list []int, path string) []int {
	var room [4096]byte
	text, err := small(path, room[:])
	if err != nil {
		return list
	}
	if len(text) < len(room) {
		return appendWords(list, text)
	}
	whole, err := os.ReadFile(path) // there may be more
	if err != nil {
		return list
	}
	return appendWords(list, whole)
}

// appendWords parses numbers separated by blanks.
func appendWords(list []int, text []byte) []int {
	n, digits := 0, 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9' && digits < maxDigits:
			n, digits = 10*n+int(c-'0'), digits+1
		case digits > 0:
			list = append(list, n)
			n, digits = 0, 0
		}
	}
	if digits > 0 {
		list = append(list, n)
	}
	return list
}
