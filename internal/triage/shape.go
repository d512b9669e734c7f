package triage

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// shape is a hash of a line without what differs between two rounds of a loop:
// words with a digit in them (times, counters, ids) count as equal, letters in
// either case too, runs of white space as one. Two lines of one shape are taken
// for the same line (ACCEPTANCE R36). An empty line has shape 0.
func shape(line string) uint64 {
	line = line[:min(len(line), maxScan)]
	hash, space, begun := uint64(fnvOffset), false, false
	add := func(b byte) { hash = (hash ^ uint64(b)) * fnvPrime }
	for i := 0; i < len(line); {
		switch b := line[i]; {
		case b <= ' ':
			space = begun
			i++
			continue
		case space:
			add(' ')
			space = false
		}
		begun = true
		if !wordByte(line[i]) {
			add(line[i])
			i++
			continue
		}
		end, numbered := wordEnd(line, i)
		if numbered {
			add('#')
		} else {
			for ; i < end; i++ {
				add(line[i] | 0x20)
			}
		}
		i = end
	}
	if !begun {
		return 0
	}
	return hash
}

// wordEnd finds the end of the word that starts at i, and whether it holds a
// digit.
func wordEnd(line string, i int) (end int, numbered bool) {
	for ; i < len(line) && wordByte(line[i]); i++ {
		numbered = numbered || digit(line[i])
	}
	return i, numbered
}
