package agentlog

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Stats are the figures of a session.
type Stats struct {
	Events       int
	Types, Tools []Count // the most frequent first
	Files        []FileChange
	Turns        int64 // the highest number of a turn, or what the end says
	Runs         int   // how often an agent started
	Errors       int
	Heartbeats   Beats
	First, Last  time.Time // zero = no event has a time
	End          *End      // of the last completed; nil = there is none
}

// Count is how often something came.
type Count struct {
	Name  string
	Count int
}

// FileChange is what was changed in one file.
type FileChange struct {
	Path           string
	Edits          int
	Added, Removed *int64 // lines; nil where an edit does not say
}

// Duration is from the first event to the last one.
func (s Stats) Duration() time.Duration { return s.Last.Sub(s.First) }

// StatsOf counts the events of a session.
func StatsOf(events []Event) Stats {
	var c Counter
	for i := range events {
		c.Add(&events[i])
	}
	return c.Stats()
}

// Counter counts the events of a session, which are added oldest first.
type Counter struct {
	stats        Stats
	types, tools map[string]int
	files        map[string]*FileChange
	beats        Beats // of the run
}

// Add counts an event, of which it keeps no more than the end.
func (c *Counter) Add(e *Event) {
	s := &c.stats
	if c.types == nil {
		c.types, c.tools, c.files = map[string]int{}, map[string]int{}, map[string]*FileChange{}
	}
	s.Events++
	c.types[e.Type]++
	if e.Turn != nil {
		s.Turns = max(s.Turns, *e.Turn)
	}
	if e.Failed {
		s.Errors++
	}
	if !e.At.IsZero() {
		s.Last = e.At
		if s.First.IsZero() {
			s.First = e.At
		}
	}
	switch {
	case e.Type == Started:
		s.Runs++
		s.Heartbeats.join(c.beats)
		c.beats = Beats{}
	case e.IsHeartbeat():
		c.beats.Add(e.At)
	case e.Type == ToolUse:
		c.tools[cmp.Or(e.Tool, "unnamed")]++
	case e.Type == FileEdited:
		countChange(c.files, e)
	case e.Type == Completed:
		s.End = e.End
		if e.End.Turns != nil {
			s.Turns = max(s.Turns, *e.End.Turns)
		}
	}
}

// Stats are the figures of what was added.
func (c *Counter) Stats() Stats {
	s := c.stats
	s.Heartbeats.join(c.beats)
	s.Types, s.Tools, s.Files = sortedCounts(c.types), sortedCounts(c.tools), sortedFiles(c.files)
	return s
}

func (b *Beats) join(other Beats) {
	b.Count += other.Count
	b.Missed += other.Missed
	b.LongestGap = max(b.LongestGap, other.LongestGap)
}

func countChange(files map[string]*FileChange, e *Event) {
	f := files[e.Path]
	if f == nil {
		f = &FileChange{Path: e.Path, Added: new(int64), Removed: new(int64)}
		files[e.Path] = f
	}
	f.Edits++
	f.Added, f.Removed = addKnown(f.Added, e.Added), addKnown(f.Removed, e.Removed)
}

func addKnown(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

func sortedCounts(counts map[string]int) []Count {
	all := make([]Count, 0, len(counts))
	for name, n := range counts {
		all = append(all, Count{name, n})
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return all
}

func sortedFiles(files map[string]*FileChange) []FileChange {
	all := make([]FileChange, 0, len(files))
	for _, f := range files {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b FileChange) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// The usual shape of a run, measured of real ones: 44 to 71 events in 567 to 1,397 s, 18 to 45 of them heartbeats.
const (
	usualEventsMin, usualEventsMax = 44, 71
	usualBeatsMin, usualBeatsMax   = 18, 45
	usualMin, usualMax             = 567 * time.Second, 1397 * time.Second
)

// Unusual says what of a session is outside the usual shape of one run; nothing = it has that shape.
func (s Stats) Unusual() []string {
	var all []string
	if s.Events < usualEventsMin || s.Events > usualEventsMax {
		all = append(all, fmt.Sprintf("%d events, usual are %d to %d", s.Events, usualEventsMin, usualEventsMax))
	}
	if d := s.Duration(); d < usualMin || d > usualMax {
		all = append(all, fmt.Sprintf("%d s, usual are %d to %d", int(d.Seconds()), int(usualMin.Seconds()), int(usualMax.Seconds())))
	}
	if n := s.Heartbeats.Count; n < usualBeatsMin || n > usualBeatsMax {
		all = append(all, fmt.Sprintf("%d heartbeats, usual are %d to %d", n, usualBeatsMin, usualBeatsMax))
	}
	return all
}
