package identity

import (
	"bytes"
	"strconv"
)

// dispositions is what /proc/PID/status says of signals; bit n-1 is signal n.
type dispositions struct {
	ignored, caught uint64
	innerPID        int // its PID in its own PID namespace
}

// sigterm is the bit of SIGTERM, signal 15 on Linux and macOS.
const sigterm = 1 << (15 - 1)

// parseLine reads one line of the file; lines about other things change nothing.
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
			d.innerPID, _ = strconv.Atoi(string(field)) // 0 for a malformed number
		}
	}
}

func hexWord(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(bytes.TrimSpace(text)), 16, 64) // malformed = no signal
	return n
}

// ignoresTerm: the init of a PID namespace gets no signal without a handler.
func (d *dispositions) ignoresTerm() bool {
	return d.ignored&sigterm != 0 || (d.innerPID == 1 && d.caught&sigterm == 0)
}
