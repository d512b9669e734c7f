package identity

import (
	"bytes"
	"encoding/binary"
)

// entryMatcher searches for one entry in a list of entries that end in NUL and arrive in
// pieces, so that an environment of any size is read with one small buffer.
type entryMatcher struct {
	want  string
	at    int  // matched bytes of the current entry
	wrong bool // the current entry differs
	found bool
}

func (m *entryMatcher) feed(piece []byte) {
	for _, b := range piece {
		switch {
		case b == 0:
			m.end()
		case m.wrong:
		case m.at < len(m.want) && m.want[m.at] == b:
			m.at++
		default:
			m.wrong = true
		}
	}
}

// endEntry completes an entry; the last one may lack its NUL.
func (m *entryMatcher) end() {
	m.found = m.found || (!m.wrong && m.at == len(m.want))
	m.at, m.wrong = 0, false
}

// procargsHave searches for an entry in the environment part of macOS's kern.procargs2: argc,
// the path of the program, padding, argc arguments, the environment; all but the first end in
// NUL.
func procargsHave(answer []byte, entry string) bool {
	if len(answer) < 4 {
		return false
	}
	argc := binary.NativeEndian.Uint32(answer)
	_, rest, ok := bytes.Cut(answer[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	for ; ok && argc > 0; argc-- {
		_, rest, ok = bytes.Cut(rest, []byte{0})
	}
	if !ok {
		return false
	}
	m := entryMatcher{want: entry}
	m.feed(rest)
	m.end()
	return m.found
}
