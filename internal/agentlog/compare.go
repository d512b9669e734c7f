package agentlog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Comparison is what differs between the work of two sessions.
type Comparison struct {
	A, B      Stats
	Work      [2]int      // events of the work, without heartbeats
	Mixed     bool        // their lines have different forms
	NoAgents  bool        // no event of either is of an agent: they are those of the lives of two sandboxes
	Diverge   *Divergence // the first event that differs; nil = the work is the same
	Acts      *Divergence // the first tool use, change of a file or end that differs; nil = none does
	OnlyTools [2][]string // what one alone ran: each tool with its main argument, in the order of the work
	OnlyFiles [2][]string // what one alone changed
	Files     []FileDifference
}

// Divergence is the place where two sessions go apart.
type Divergence struct {
	N    int    // of the compared events, from 1
	A, B *Event // nil = the session has ended before
}

// FileDifference is a file that both have changed in different ways.
type FileDifference struct {
	Path string
	A, B FileChange
}

// Same says that both did the same work.
func (c Comparison) Same() bool { return c.Diverge == nil }

// Compare compares two sessions that were read with Options.Keys. Of two forms only what the agents did is compared, since
// their tools have other names and write other texts around it: see eventKeys.
func Compare(sessionA, sessionB *Session) Comparison {
	a, b := sessionA.Events, sessionB.Events
	c := Comparison{A: StatsOf(a), B: StatsOf(b), Mixed: cmp.Or(sessionA.Form, FormEvents) != cmp.Or(sessionB.Form, FormEvents)}
	workA, workB := chosen(a, c.isWork), chosen(b, c.isWork)
	c.Work = [2]int{len(workA), len(workB)}
	c.NoAgents = !slices.ContainsFunc(a, ofAgent) && !slices.ContainsFunc(b, ofAgent)
	c.Diverge = c.diverge(workA, workB)
	if c.Diverge == nil {
		return c
	}
	c.Acts = c.diverge(chosen(a, c.isAct), chosen(b, c.isAct))
	c.OnlyTools = [2][]string{c.onlyTools(workA, workB), c.onlyTools(workB, workA)}
	filesA, filesB := paths(c.A), paths(c.B)
	c.OnlyFiles = [2][]string{without(filesA, filesB), without(filesB, filesA)}
	c.Files = fileDifferences(c, c.diffsOf(workA), c.diffsOf(workB))
	return c
}

func ofAgent(e Event) bool { return strings.HasPrefix(e.Type, "agent.") }

func chosen(events []Event, choose func(*Event) bool) []*Event {
	var all []*Event
	for i := range events {
		if choose(&events[i]) {
			all = append(all, &events[i])
		}
	}
	return all
}

// isWork says that an event is compared. Of two forms these are messages, uses of tools and changes of files: the lines
// about a start, an end and the answer of a tool are those of the client.
func (c *Comparison) isWork(e *Event) bool {
	switch e.Type {
	case Started, Completed, SystemMessage, ToolCompleted, UserToolResult:
		return !c.Mixed
	}
	return e.IsWork()
}

// isAct says that an event is an act. Of two forms the use of an editor is none: the change of the file says what it did.
func (c *Comparison) isAct(e *Event) bool {
	edits := e.Type == ToolUse && isEditor(e.Tool)
	return e.IsAct() && c.isWork(e) && (!c.Mixed || !edits)
}

func (c *Comparison) key(e *Event) uint64 {
	if c.Mixed {
		return e.keys.did
	}
	return e.keys.work
}

// diverge finds the first pair that differs; nil = there is none.
func (c *Comparison) diverge(a, b []*Event) *Divergence {
	at := func(list []*Event, i int) *Event {
		if i < len(list) {
			return list[i]
		}
		return nil
	}
	for i := range max(len(a), len(b)) {
		if x, y := at(a, i), at(b, i); x == nil || y == nil || c.key(x) != c.key(y) {
			return &Divergence{N: i + 1, A: x, B: y}
		}
	}
	return nil
}

// onlyTools are the uses of tools that the other session does not have, each once.
func (c *Comparison) onlyTools(work, other []*Event) []string {
	key := func(e *Event) string {
		if c.Mixed {
			return strconv.FormatUint(e.keys.did, 16)
		}
		return e.What
	}
	known := map[string]bool{}
	for _, e := range other {
		if e.Type == ToolUse {
			known[key(e)] = true
		}
	}
	var all []string
	for _, e := range work {
		if e.Type == ToolUse && !known[key(e)] && c.isAct(e) {
			known[key(e)] = true
			all = append(all, e.What)
		}
	}
	return all
}

func paths(s Stats) []string {
	all := make([]string, len(s.Files))
	for i, f := range s.Files {
		all[i] = f.Path
	}
	return all
}

func without(list, other []string) []string {
	known := make(map[string]bool, len(other))
	for _, name := range other {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return known[name] })
}

// diffsOf are the diffs of each file, in their order.
func (c *Comparison) diffsOf(work []*Event) map[string][]uint64 {
	all := map[string][]uint64{}
	for _, e := range work {
		switch {
		case e.Type != FileEdited:
		case c.Mixed:
			all[e.Path] = append(all[e.Path], e.keys.changed)
		default:
			all[e.Path] = append(all[e.Path], e.keys.diff)
		}
	}
	return all
}

func fileDifferences(c Comparison, diffsA, diffsB map[string][]uint64) []FileDifference {
	byPath := map[string]FileChange{}
	for _, f := range c.B.Files {
		byPath[f.Path] = f
	}
	var all []FileDifference
	for _, a := range c.A.Files {
		b, both := byPath[a.Path]
		if both && (!equalKnown(a.Added, b.Added) || !equalKnown(a.Removed, b.Removed) || !slices.Equal(diffsA[a.Path], diffsB[a.Path])) {
			all = append(all, FileDifference{a.Path, a, b})
		}
	}
	return all
}

func equalKnown(a, b *int64) bool {
	return (a == nil) == (b == nil) && (a == nil || cmp.Compare(*a, *b) == 0)
}
