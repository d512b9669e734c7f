package identity

import (
	"bytes"
	"strconv"
)

// dispositions is what /proc/PID/status says of signals; bit n-1 stands for
// signal n.
type dispositions struct {
	ignored, caught uint64
	innerPID        int // its number in the PID namespace that it lives in
}

// sigterm is the bit of SIGTERM, signal 15 on Linux and macOS.
const sigterm = 1 << (15 - 1)

// read takes one line of the file; lines that say nothing of signals change
// nothing.
func (d *dispositions) read(line []byte) {
	key, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return
	}
	switch string(key) {
	case "SigIgn":
		d.ignored = hexWord(value)
	case "SigCgt":
		d.caught = hexWord(value)
	case "NSpid":
		for field := range bytes.FieldsSeq(value) {
			d.innerPID, _ = strconv.Atoi(string(field)) // 0 on garbage, which is nobody's number
		}
	}
}

func hexWord(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(bytes.TrimSpace(text)), 16, 64) // garbage = no signal
	return n
}

// ignoresTerm: the init of a PID namespace gets no signal that it has no handler for.
func (d *dispositions) ignoresTerm() bool {
	return d.ignored&sigterm != 0 || (d.innerPID == 1 && d.caught&sigterm == 0)
}
