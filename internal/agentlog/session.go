package agentlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"time"
)

// Session is a list of events, oldest first, each once.
type Session struct {
	Events []Event // none with Options.Places: see Each
	Problems

	places []place // with Options.Places; else nil
	diffs  bool    // Options.Diffs
}

// Problems are what was wrong with the lines of a session. Nothing else is left out of it.
type Problems struct {
	Unreadable Problem // lines that are no event
	TooLong    Problem // lines beyond MaxLine
	Repeated   Problem // lines with the id of an earlier one
	Disordered Problem // lines with an earlier time than the one before
	Untimed    Problem // lines without a time; they stay behind the line before
	LeftOut    int     // diffs beyond MaxDiffs
	CutLine    int     // the last line, where it ends in its middle; 0 = it does not
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
	lost := p.Unreadable.Count + p.TooLong.Count
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
	add(p.Repeated, "has the id of an earlier line and is left out", "have the id of an earlier line and are left out")
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
	seen    map[uint64]struct{}
	last    time.Time // of the latest event that was added
	at      int64     // how much of a file was read, in bytes
	line    int       // and in lines
}

// NewCollector makes a collector.
func NewCollector(o Options) *Collector {
	return &Collector{Decoder: Decoder{Options: o}, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
}

// Repeats says that an event with this id was seen before; an event without an id never was.
func (c *Collector) Repeats(id string) bool {
	if id == "" {
		return false
	}
	hash := maphash.String(c.seed, id)
	_, known := c.seen[hash]
	c.seen[hash] = struct{}{}
	return known
}

// Add adds an event from no file, unless it is known; false for one that is. One without an id is known by
// its source, time, type and text.
func (c *Collector) Add(raw Raw) bool {
	key := raw.ID
	if key == "" {
		key = raw.Source + "\x00" + raw.At.String() + "\x00" + raw.Type + "\x00" + raw.Detail
	}
	if c.Repeats(key) {
		return false
	}
	c.session.Events = append(c.session.Events, c.Decode(raw))
	return true
}

// addLine adds a line that begins at a byte of its file, if it is a new event.
func (c *Collector) addLine(text []byte, line int, start int64) {
	if len(bytes.TrimSpace(text)) == 0 {
		return
	}
	raw, err := c.decodeFrame(text)
	if err != nil {
		c.session.Unreadable.add(line)
		return
	}
	if c.Repeats(raw.ID) {
		c.session.Repeated.add(line)
		return
	}
	switch {
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
		p.start, p.size, p.line = start, int32(len(text)), int32(line)
		c.session.places = append(c.session.places, p)
		return
	}
	e := c.Decode(raw)
	e.Line = line
	c.session.Events = append(c.session.Events, e)
}

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
		if c.takeLine(l, read); ended {
			return nil
		}
	}
}

// ReadGrowth forgets the events that the session has and reads those that its file, which has size bytes
// now, has grown by. Restarted: the file is shorter than before, and was read from its beginning.
func (c *Collector) ReadGrowth(ctx context.Context, file io.ReaderAt, size int64) (restarted bool, err error) {
	c.session.Events, c.session.places = nil, nil
	if restarted = size < c.at; restarted {
		c.at, c.line = 0, 0
	}
	return restarted, c.ReadLines(ctx, io.NewSectionReader(file, c.at, size-c.at))
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
