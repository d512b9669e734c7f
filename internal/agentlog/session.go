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

// Session sorts the events by time and gives them.
func (c *Collector) Session() *Session {
	s := &c.session
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

// Read reads a session of JSONL to its end. An error is that of the reader, beside what was read
// before it, or what ended ctx.
func Read(ctx context.Context, r io.Reader, o Options) (*Session, error) {
	c, l := NewCollector(o), newLines(r)
	for {
		if ctx.Err() != nil {
			return c.Session(), context.Cause(ctx)
		}
		read, err := l.next()
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return c.Session(), err
		}
		if c.takeLine(l, read); ended {
			return c.Session(), nil
		}
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
		c.session.Events = append(c.session.Events, e)
	case !read.ended && c.session.Unreadable != before:
		c.session.Unreadable, c.session.CutLine = before, l.n
	}
}
