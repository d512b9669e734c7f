package triage

// automaton finds all literals in one pass over a text, whatever their number:
// Aho-Corasick over bytes, with ASCII letters folded to lower case.
type automaton struct {
	class [256]uint8 // byte -> column; 0 = occurs in no literal
	width int        // columns per state
	next  []uint16   // state*width + column -> state
	out   [][]int    // state -> literals that end here
	ends  []bool     // state -> whether any literal ends there; a small table that stays in the L1 cache
}

// buildAutomaton takes lower-case literals of at most 65,535 bytes in all.
func buildAutomaton(literals []string) automaton {
	a := automaton{width: 1}
	for _, l := range literals {
		for i := range len(l) {
			if a.class[l[i]] == 0 {
				a.class[l[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[c+('a'-'A')]
	}
	a.addState()
	for id, l := range literals {
		at := 0
		for i := range len(l) {
			cell := at*a.width + int(a.class[l[i]])
			if a.next[cell] == 0 {
				a.next[cell] = uint16(a.addState())
			}
			at = int(a.next[cell])
		}
		a.out[at] = append(a.out[at], id)
	}
	a.linkSuffixes()
	a.ends = make([]bool, len(a.out))
	for i, o := range a.out {
		a.ends[i] = len(o) > 0
	}
	return a
}

func (a *automaton) addState() int {
	a.next = append(a.next, make([]uint16, a.width)...)
	a.out = append(a.out, nil)
	return len(a.out) - 1
}

// linkSuffixes fills every missing transition with that of the longest proper suffix, so
// that a scan never goes back.
func (a *automaton) linkSuffixes() {
	fail := make([]int, len(a.out))
	queue := []int{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := range a.width {
			cell := at*a.width + c
			behind := 0
			if at != 0 {
				behind = int(a.next[fail[at]*a.width+c])
			}
			to := int(a.next[cell])
			if to == 0 {
				a.next[cell] = uint16(behind)
				continue
			}
			fail[to] = behind
			a.out[to] = append(a.out[to], a.out[behind]...)
			queue = append(queue, to)
		}
	}
}

func (a *automaton) nextState(state int, b byte) int {
	return int(a.next[state*a.width+int(a.class[b])])
}
