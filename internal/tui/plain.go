package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// plainHeight is for how many rows Plain keeps the looks current: those of a large screen, the worst first.
const plainHeight = 60

// Plain says what changes, a sentence a line, for screen readers, pipes and terminals without a cursor, until
// ctx ends or a line cannot be written; the error is the cause of the one, or that of the other.
func Plain(ctx context.Context, source Source, now func() time.Time, line func(string) error) error {
	m := NewModel(ctx, source, now, "", output.Cells{Plain: true})
	m.height = plainHeight
	messages := make(chan tea.Msg)
	var start func(tea.Cmd)
	start = func(cmd tea.Cmd) {
		if cmd == nil {
			return
		}
		go func() {
			msg := cmd()
			if batch, is := msg.(tea.BatchMsg); is {
				for _, one := range batch {
					start(one)
				}
				return
			}
			select {
			case messages <- msg:
			case <-ctx.Done():
			}
		}()
	}
	start(m.Init())
	said := news{rows: map[sandbox.Ref]*row{}, counted: map[string]bool{}, failing: map[string]bool{}}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case msg := <-messages:
			_, cmd := m.Update(msg)
			start(cmd)
			for _, sentence := range said.next(m) {
				if err := line(sentence); err != nil {
					return err
				}
			}
		}
	}
}

// news is what was said.
type news struct {
	rows    map[sandbox.Ref]*row // as they were
	counted map[string]bool      // profiles whose sandboxes were counted
	failing map[string]bool
}

// next are the sentences about what has changed since.
func (n *news) next(m *Model) (all []string) {
	fresh := map[string]bool{}
	for _, f := range m.feeds {
		switch {
		case f.err != nil && !n.failing[f.profile]:
			all = append(all, f.profile+" does not answer: "+f.err.Error())
		case f.err == nil && n.failing[f.profile]:
			all = append(all, f.profile+" answers again")
		}
		n.failing[f.profile] = f.err != nil
		if f.known && !n.counted[f.profile] {
			n.counted[f.profile], fresh[f.profile] = true, true
			all = append(all, f.profile+": "+m.countText(f.profile))
		}
	}
	added, gone, there := map[string][]string{}, map[string][]string{}, map[sandbox.Ref]bool{}
	for _, r := range m.rows {
		there[r.Ref()] = true
		was := n.rows[r.Ref()]
		if was == nil && !fresh[r.Provider] {
			added[r.Provider] = append(added[r.Provider], r.ref)
		}
		if text := r.change(was); text != "" {
			all = append(all, r.ref+" "+text)
		}
		n.keep(r, was)
	}
	for ref, was := range n.rows {
		if !there[ref] {
			gone[ref.Provider] = append(gone[ref.Provider], was.ref)
			delete(n.rows, ref)
		}
	}
	for _, f := range m.feeds {
		var parts []string
		for _, part := range []struct {
			word string
			refs []string
		}{{"new", added[f.profile]}, {"gone", gone[f.profile]}} {
			if len(part.refs) > 0 {
				slices.Sort(part.refs)
				parts = append(parts, fmt.Sprintf("%d %s: %s", len(part.refs), part.word, sandbox.FormatFirst(part.refs, 3)))
			}
		}
		if len(parts) > 0 {
			all = append(all, f.profile+": "+strings.Join(parts, "; "))
		}
	}
	return all
}

// keep notes what a row is now. A verdict that a look has told is not taken back because the look is old.
func (n *news) keep(r, was *row) {
	now := *r
	if was != nil && r.group == tabUnjudged && r.State == was.State {
		now.group, now.Verdict = was.group, was.Verdict
	}
	n.rows[r.Ref()] = &now
}

// change says what a row is now, that it was not before; "" = nothing new. Was is nil for a row that was not
// known: then only what needs attention is said.
func (r *row) change(was *row) string {
	age := ""
	if r.age >= 0 {
		age = ", " + sandbox.FormatElapsed(r.age) + " old"
	}
	known := was != nil
	switch {
	case known && r.State != was.State && r.group != tabStuck:
		return joinReason(fmt.Sprintf("went from %s to %s", was.State, r.State), r.Why())
	case r.group == tabStuck && known && was.group != tabStuck:
		return "became " + r.Why() + age
	case r.group == tabStuck && (!known || was.Why() != r.Why()):
		return "is " + r.Why() + age
	case r.group == tabRisk && (!known || was.group != tabRisk):
		return joinReason("is at risk", r.Why()) + age
	case known && r.group == tabWorking && (was.group == tabStuck || was.group == tabRisk):
		return "works again"
	}
	return ""
}

func joinReason(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}

// countText counts the sandboxes of a profile by their groups: "3 sandboxes: 1 stuck, 2 working".
func (m *Model) countText(profile string) string {
	var counts [tabs]int
	for _, r := range m.rows {
		if r.Provider == profile {
			counts[r.group]++
			counts[tabAll]++
		}
	}
	var parts []string
	for t := range tabAll {
		if counts[t] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[t], strings.ToLower(t.title())))
		}
	}
	switch counts[tabAll] {
	case 0:
		return "no sandboxes"
	case 1:
		return "1 sandbox: " + parts[0]
	}
	return fmt.Sprintf("%d sandboxes: %s", counts[tabAll], strings.Join(parts, ", "))
}
