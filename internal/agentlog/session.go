package agentlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Session is a list of events, oldest first, each once.
type Session struct {
	Events []Event // none with Options.Places: see Each
	Problems

	Form   Form    // "" = no line tells
	Tokens *Tokens // of a transcript; nil = no line tells

	places     []place    // with Options.Places; else nil
	diffs      bool       // Options.Diffs
	translator translator // of a transcript; else nil
}

// Problems are what was wrong with the lines of a session. Nothing else is left out of it.
type Problems struct {
	Unreadable Problem // lines that are no event
	TooLong    Problem // lines beyond MaxLine
	Repeated   Problem // lines that came before, with their id
	SameID     Problem // lines with the id of an earlier, other one; they are shown
	Disordered Problem // lines with an earlier time than the one before
	Untimed    Problem // lines without a time; they stay behind the line before
	Unknown    Problem // lines of a transcript of a type that is not known
	Copied     Problem // lines of a transcript that are another session's, of which this one is a fork

	UnknownTypes []string // of Unknown, the first ones
	Sessions     []string // of a transcript, the ids that its lines have, the first ones
	LeftOut      int      // diffs beyond MaxDiffs
	CutLine      int      // the last line, where it ends in its middle; 0 = it does not
	Zstd         bool     // the file is compressed with zstd, as Codex does with old ones
}

// Problem is how often something was wrong, and the first line.
type Problem struct{ Count, First int }

func (p *Problem) add(line int) {
	if p.Count++; p.Count == 1 {
		p.First = line
	}
}

// Lost is how many lines could not be read.
func (p Problems) Lost() int {
	lost := p.Unreadable.Count + p.TooLong.Count + p.Unknown.Count
	if p.CutLine > 0 {
		lost++
	}
	return lost
}

// Warnings are the problems in sentences.
func (p Problems) Warnings() []string {
	var all []string
	add := func(p Problem, one, many string) {
		switch {
		case p.Count == 1:
			all = append(all, fmt.Sprintf("line %d %s", p.First, one))
		case p.Count > 1:
			all = append(all, fmt.Sprintf("%d lines %s; the first is line %d", p.Count, many, p.First))
		}
	}
	add(p.Unreadable, "is no event and is left out", "are no events and are left out")
	add(p.TooLong, "is longer than 32 MiB and is left out", "are longer than 32 MiB and are left out")
	if p.CutLine > 0 {
		all = append(all, fmt.Sprintf("the file ends in the middle of line %d, which is left out", p.CutLine))
	}
	types := strings.Join(p.UnknownTypes, ", ")
	add(p.Unknown, "is of a type that sbx does not know ("+types+") and is left out", "are of types that sbx does not know ("+types+") and are left out")
	if len(p.Sessions) > 1 {
		all = append(all, "it has the lines of several sessions ("+strings.Join(p.Sessions, ", ")+"); the events of all are shown")
	}
	add(p.Copied, "is history of the session that this one was forked from and is left out", "are history of the session that this one was forked from and are left out")
	add(p.Repeated, "came before, with its id, and is left out", "came before, with their ids, and are left out")
	add(p.SameID, "differs from an earlier line with its id; both are shown", "differ from earlier lines with their ids; all are shown")
	add(p.Disordered, "is older than the line before; events are sorted by time", "are older than the line before; events are sorted by time")
	if p.LeftOut > 0 {
		all = append(all, fmt.Sprintf("diffs beyond 64 MiB are left out: %d; those of a file are all shown", p.LeftOut))
	}
	add(p.Untimed, "has no time and stays behind the line before", "have no time and stay behind the line before")
	return all
}

// Collector makes a session of events that come in any order.
type Collector struct {
	Decoder

	session Session
	seed    maphash.Seed
	seen    map[uint64]uint64 // what first had an id, by the id
	last    time.Time         // of the latest event that was added
	at      int64             // how much of a file was read, in bytes
	line    int               // and in lines
	end     lineSum           // the last line that was read, with Options.Growing
	echoes  map[uint64]echoes // of a transcript
}

// lineSum is a line of a file: where it is, and its sum.
type lineSum struct {
	start, end int64
	sum        uint64
}

// NewCollector makes a collector.
func NewCollector(o Options) *Collector {
	return &Collector{Decoder: Decoder{Options: o}, seed: maphash.MakeSeed(), seen: map[uint64]uint64{}}
}

// repeats says that an id was seen before, and whether with the same content: the ids are those of a foreign source,
// which may count anew with each run of an agent. An event without an id never was.
func (c *Collector) repeats(id string, content uint64) (known, same bool) {
	if id == "" {
		return false, false
	}
	key := c.sum(id)
	first, known := c.seen[key]
	switch {
	case !known:
		c.seen[key] = content
		return false, false
	case first == content:
		return true, true
	}
	other := key ^ content
	_, same = c.seen[other]
	c.seen[other] = content
	return true, same
}

func (c *Collector) sum(text string) uint64 { return maphash.String(c.seed, text) }

// Add adds an event from no file, unless it is known; false for one that is. One without an id is known by
// its source, time, type and text.
func (c *Collector) Add(raw Raw) bool {
	content := strings.Join([]string{raw.Source, raw.At.UTC().String(), raw.Type, raw.Detail}, "\x00")
	sum := maphash.String(c.seed, content+"\x00"+string(raw.Data))
	if _, same := c.repeats(cmp.Or(raw.ID, content), sum); same {
		return false
	}
	c.session.Events = append(c.session.Events, c.Decode(raw))
	return true
}

// addLine adds the events of a line that begins at a byte of its file, if they are new: one, or several that were written
// without an end of line between them.
func (c *Collector) addLine(text []byte, line int, start int64) {
	for {
		whole := len(text)
		text = bytes.TrimLeftFunc(text, isFiller)
		start += int64(whole - len(text))
		if text = bytes.TrimRightFunc(text, isFiller); len(text) == 0 {
			return
		}
		size := len(text)
		f, err := c.readObject(text)
		if err != nil {
			if first := firstObject(text); first > 0 {
				size = first
				f, err = c.readObject(text[:size])
			}
		}
		if err == nil {
			err = c.addObject(f, text[:size], line, start)
		}
		if err != nil {
			c.session.Unreadable.add(line)
			c.session.Zstd = c.session.Zstd || line == 1 && bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd")) // RFC 8878
			return
		}
		text, start = text[size:], start+int64(size)
	}
}

// addObject adds the events of an object of a line. An error is ErrNoEvent.
func (c *Collector) addObject(f fields, text []byte, line int, start int64) error {
	s := &c.session
	if s.Form == "" {
		s.setForm(f)
	}
	if s.translator != nil {
		c.addTranscriptLine(f, text, line, start)
		return nil
	}
	raw, err := frameOf(f)
	if err == nil {
		c.addFrame(raw, text, line, start)
	}
	return err
}

// addFrame adds the event of a text of a line.
func (c *Collector) addFrame(raw Raw, text []byte, line int, start int64) {
	known, same := c.repeats(raw.ID, maphash.Bytes(c.seed, text))
	switch {
	case same:
		c.session.Repeated.add(line)
		return
	case known:
		c.session.SameID.add(line)
	}
	c.addEvent(raw, place{start: start, size: int32(len(text)), line: int32(line)})
}

// addEvent adds an event of a line.
func (c *Collector) addEvent(raw Raw, at place) {
	switch line := int(at.line); {
	case raw.At.IsZero():
		c.session.Untimed.add(line)
	case raw.At.Before(c.last):
		c.session.Disordered.add(line)
	}
	if !raw.At.IsZero() {
		c.last = raw.At
	}
	if c.Places {
		p := placeOf(&Event{At: raw.At, Type: raw.Type})
		p.start, p.size, p.line, p.step = at.start, at.size, at.line, at.step
		c.session.places = append(c.session.places, p)
		return
	}
	e := c.Decode(raw)
	e.Line = int(at.line)
	c.session.Events = append(c.session.Events, e)
}

// firstObject is where the first of several values in one line ends, if it is an object; 0 = there is no other.
func firstObject(text []byte) int {
	from := json.NewDecoder(bytes.NewReader(text))
	var first json.RawMessage
	if text[0] != '{' || from.Decode(&first) != nil || from.InputOffset() == int64(len(text)) {
		return 0
	}
	return int(from.InputOffset())
}

// isFiller says that a character may stand around an event: white space, the byte order mark that some editors write in
// front of a file, which is in its middle where files were joined, and the NULs that a crash leaves.
func isFiller(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' || r == 0 }

// NewestFirst gives the events that were added newest first, the oldest first.
func (c *Collector) NewestFirst() *Session {
	slices.Reverse(c.session.Events)
	return c.Session()
}

// Session sorts the events by time and gives them.
func (c *Collector) Session() *Session {
	s := &c.session
	s.LeftOut = c.leftOut
	s.diffs = c.Diffs
	if s.translator != nil {
		s.Tokens = s.translator.tokens()
	}
	sortByTime(s.Events, func(e *Event) time.Time { return e.At })
	sortByTime(s.places, (*place).at)
	return s
}

// sortByTime sorts what has times and leaves the order of equal ones. What has none has the time of the one before.
func sortByTime[T any](list []T, at func(*T) time.Time) {
	times, order, last := make([]time.Time, len(list)), make([]int, len(list)), time.Time{}
	for i := range list {
		if own := at(&list[i]); !own.IsZero() {
			last = own
		}
		times[i], order[i] = last, i
	}
	if slices.IsSortedFunc(times, time.Time.Compare) {
		return
	}
	slices.SortStableFunc(order, func(a, b int) int { return times[a].Compare(times[b]) })
	before := slices.Clone(list)
	for i, from := range order {
		list[i] = before[from]
	}
}

// ReadLines reads the lines of a file, or of the rest of it behind what was read before. With
// Options.Growing a last line without an end is left for the next time. An error is
// that of the reader, or what ended ctx; what was read before it is kept.
func (c *Collector) ReadLines(ctx context.Context, r io.Reader) error {
	l := newLines(r)
	l.at, l.n = c.at, c.line
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		read, err := l.next()
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return err
		}
		if ended && c.Growing && l.at > l.start {
			return nil
		}
		c.at, c.line = l.at, l.n
		if c.Growing && l.at > l.start {
			c.end = lineSum{l.start, l.at, maphash.Bytes(c.seed, read.text)}
		}
		if c.takeLine(l, read); ended {
			return nil
		}
	}
}

// ReadGrowth forgets the events that the session has and reads those that its file, which has size bytes
// now, has grown by. Restarted: it was read from its beginning, since another file has its name, or it is shorter than
// before, or does not have the line any more that was read last.
func (c *Collector) ReadGrowth(ctx context.Context, file io.ReaderAt, size int64, another bool) (restarted bool, err error) {
	c.session.Events, c.session.places = nil, nil
	same, err := c.hasLastLine(file)
	if err != nil {
		return false, err
	}
	if restarted = another || size < c.at || !same; restarted {
		c.at, c.line, c.end, c.last = 0, 0, lineSum{}, time.Time{}
		c.session.Form, c.session.translator, c.echoes = "", nil, nil
	}
	return restarted, c.ReadLines(ctx, io.NewSectionReader(file, c.at, size-c.at))
}

// hasLastLine says that the line that was read last is where it was. The text of one beyond MaxLine is not compared.
func (c *Collector) hasLastLine(file io.ReaderAt) (bool, error) {
	size := c.end.end - c.end.start
	if size == 0 || size > MaxLine {
		return true, nil
	}
	text := make([]byte, size)
	n, err := file.ReadAt(text, c.end.start)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return int64(n) == size && maphash.Bytes(c.seed, text) == c.end.sum, nil
}

// Forget forgets the events that the session has, not which they were.
func (c *Collector) Forget() { c.session.Events, c.diffs = nil, 0 }

// takeLine adds a line of a file. Without an end it may be cut in its middle.
func (c *Collector) takeLine(l *lines, read line) {
	if read.long {
		c.session.TooLong.add(l.n)
		return
	}
	before := c.session.Unreadable
	if c.addLine(read.text, l.n, l.start); !read.ended && c.session.Unreadable != before {
		c.session.Unreadable, c.session.CutLine = before, l.n
	}
}
