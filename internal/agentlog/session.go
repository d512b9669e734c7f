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
	Events []Event
	Problems
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

// addLine reads a line. False: it is no new event.
func (c *Collector) addLine(text []byte, line int, at span) (Event, bool) {
	if len(bytes.TrimSpace(text)) == 0 {
		return Event{}, false
	}
	e, err := c.DecodeLine(text)
	if err != nil {
		c.session.Unreadable.add(line)
		return e, false
	}
	if c.Repeats(e.ID) {
		c.session.Repeated.add(line)
		return e, false
	}
	e.Line, e.span = line, at
	switch {
	case e.At.IsZero():
		c.session.Untimed.add(line)
	case e.At.Before(c.last):
		c.session.Disordered.add(line)
	}
	if !e.At.IsZero() {
		c.last = e.At
	}
	return e, true
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
	if times := sortTimes(s.Events); !slices.IsSortedFunc(times, time.Time.Compare) {
		sortBy(s.Events, times)
	}
	return s
}

// sortTimes are the times by which events are sorted: that of the event before, for one without.
func sortTimes(events []Event) []time.Time {
	times := make([]time.Time, len(events))
	last := time.Time{}
	for i, e := range events {
		if !e.At.IsZero() {
			last = e.At
		}
		times[i] = last
	}
	return times
}

// sortBy sorts events by their times and leaves the order of equal ones.
func sortBy(events []Event, times []time.Time) {
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return times[a].Compare(times[b]) })
	sorted := make([]Event, len(events))
	for i, from := range order {
		sorted[i] = events[from]
	}
	copy(events, sorted)
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
	c.session.Events = nil
	if restarted = size < c.at; restarted {
		c.at, c.line = 0, 0
	}
	return restarted, c.ReadLines(ctx, io.NewSectionReader(file, c.at, size-c.at))
}

// Forget forgets the events that the session has, not which they were.
func (c *Collector) Forget() { c.session.Events, c.diffs = nil, 0 }

// reserve reserves memory for the events of a large file when their average length is known: a list that grows is in
// memory twice.
func (c *Collector) reserve() {
	const known, most = 1000, 200_000
	if n := len(c.session.Events); n == known && c.Size > c.at {
		c.session.Events = slices.Grow(c.session.Events, int(min(most, float64(c.Size)/float64(c.at)*known*1.02-known)))
	}
}

// takeLine adds a line of a file. Without an end it may be cut in its middle.
func (c *Collector) takeLine(l *lines, read line) {
	if read.long {
		c.session.TooLong.add(l.n)
		return
	}
	before := c.session.Unreadable
	e, ok := c.addLine(read.text, l.n, span{l.start, len(read.text)})
	switch {
	case ok:
		c.reserve()
		c.session.Events = append(c.session.Events, e)
	case !read.ended && c.session.Unreadable != before:
		c.session.Unreadable, c.session.CutLine = before, l.n
	}
}
