package identity

import (
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

// children is empty for a process that has ended, and lacks those of a thread
// that has: they have another parent.
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

// appendWords reads numbers between blanks.
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
