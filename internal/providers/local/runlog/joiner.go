package runlog

import "sbx/internal/sandbox"

// MaxLineBytes is the most text of one line that a reader is given; the rest of
// a longer one is left out and the line marked as truncated. It bounds the
// memory of a reader against a program that never ends a line.
const MaxLineBytes = 64 << 10

// joiner makes lines of records: it keeps, for each stream, the parts of a line
// until its end comes.
type joiner struct {
	open [streams]struct {
		line   sandbox.LogLine // without its text
		text   []byte
		active bool
	}
}

// add takes a record, and gives the line that it ends. A torn record lacks the
// end of its text.
func (j *joiner) add(r record, torn bool) (sandbox.LogLine, bool) {
	o := &j.open[r.stream.index()]
	if !o.active {
		o.line = sandbox.LogLine{At: r.at, Stream: string(r.stream)}
		o.active, o.text = true, o.text[:0]
	}
	n := min(len(r.text), MaxLineBytes-len(o.text))
	o.line.Truncated = o.line.Truncated || torn || n < len(r.text)
	o.text = append(o.text, r.text[:n]...)
	if r.tag == part {
		return sandbox.LogLine{}, false
	}
	return j.take(r.stream.index()), true
}

// take ends a line.
func (j *joiner) take(index int) sandbox.LogLine {
	o := &j.open[index]
	o.active = false
	o.line.Text = string(o.text)
	return o.line
}

// rest gives the lines that nothing ends, and forgets them.
func (j *joiner) rest() []sandbox.LogLine {
	var lines []sandbox.LogLine
	for i := range j.open {
		if j.open[i].active {
			lines = append(lines, j.take(i))
		}
	}
	return lines
}
