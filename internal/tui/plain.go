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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := NewModel(ctx, source, now, "", output.Cells{Plain: true})
	m.height = plainHeight
	messages := make(chan tea.Msg)
	start(ctx, m.Init(), messages)
	said := news{rows: map[sandbox.Ref]reported{}, counted: map[string]bool{}, failing: map[string]bool{}}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case msg := <-messages:
			_, cmd := m.Update(msg)
			start(ctx, cmd, messages)
			for _, sentence := range said.next(m) {
				if err := line(sentence); err != nil {
					return err
				}
			}
		}
	}
}

// start runs a command as the loop of Bubble Tea does.
func start(ctx context.Context, cmd tea.Cmd, messages chan<- tea.Msg) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		if batch, is := msg.(tea.BatchMsg); is {
			for _, one := range batch {
				start(ctx, one, messages)
			}
			return
		}
		select {
		case messages <- msg:
		case <-ctx.Done():
		}
	}()
}

// news is what was said.
type news struct {
	rows    map[sandbox.Ref]reported
	counted map[string]bool // profiles whose sandboxes were counted
	failing map[string]bool
}

// next are the sentences about what has changed since.
func (n *news) next(m *Model) (all []string) {
	fresh := map[string]bool{} // profiles whose sandboxes are counted now, and so are not new
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
			all = append(all, f.profile+": "+m.groupsText(f.profile))
		}
	}
	added, there := map[string][]string{}, map[sandbox.Ref]bool{}
	for _, r := range m.rows {
		there[r.Ref()] = true
		was := n.rows[r.Ref()]
		if was == (reported{}) && !fresh[r.Provider] {
			added[r.Provider] = append(added[r.Provider], r.ref())
		}
		is := reported{r.State, r.group, r.line(m.now()).Why()}
		if text := is.change(was, r.age); text != "" {
			all = append(all, r.ref()+" "+text)
		}
		if was.state == is.state && is.group == tabUnjudged { // a verdict that a look has told is not taken back because the look is old
			is = was
		}
		n.rows[r.Ref()] = is
	}
	gone := n.forget(there)
	for _, f := range m.feeds {
		parts := append(countAndNames("new", added[f.profile]), countAndNames("gone", gone[f.profile])...)
		if len(parts) > 0 {
			all = append(all, f.profile+": "+strings.Join(parts, "; "))
		}
	}
	return all
}

// forget drops the rows that are not there any more, and gives their references by profile.
func (n *news) forget(there map[sandbox.Ref]bool) map[string][]string {
	gone := map[string][]string{}
	for ref := range n.rows {
		if !there[ref] {
			gone[ref.Provider] = append(gone[ref.Provider], ref.String())
			delete(n.rows, ref)
		}
	}
	return gone
}

// countAndNames is "2 new: a, b" as a list of one; none without references.
func countAndNames(word string, refs []string) []string {
	if len(refs) == 0 {
		return nil
	}
	slices.Sort(refs)
	return []string{fmt.Sprintf("%d %s: %s", len(refs), word, sandbox.FormatFirst(refs, 3))}
}

// reported is what was said of a sandbox; the zero value is one that was not known.
type reported struct {
	state sandbox.State
	group tab
	why   string
}

// change says what a sandbox is now, that it was not before; "" = nothing new. Of one that was not known only what
// needs attention is said.
func (is reported) change(was reported, age time.Duration) string {
	old := ""
	if age >= 0 {
		old = ", " + sandbox.FormatElapsed(age) + " old"
	}
	known := was != reported{}
	judged := known && was.group != tabUnjudged
	switch {
	case known && is.state != was.state && is.group != tabStuck:
		return joinReason(fmt.Sprintf("went from %s to %s", was.state, is.state), is.why)
	case is.group == tabStuck && judged && was.group != tabStuck:
		return "became " + is.why + old
	case is.group == tabStuck && (!judged || was.why != is.why):
		return "is " + is.why + old
	case is.group == tabRisk && (!known || was.group != tabRisk):
		return joinReason("is at risk", is.why) + old
	case known && is.group == tabWorking && (was.group == tabStuck || was.group == tabRisk):
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

// groupsText counts the sandboxes of a profile by their groups: "3 sandboxes: 1 stuck, 2 working".
func (m *Model) groupsText(profile string) string {
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
