package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// Source is what the dashboard reads. Its methods may take long; they are called outside of Update,
// concurrently, and end with their context.
type Source interface {
	// Profiles are those that are read, in their order.
	Profiles() []string
	// Round reads one profile.
	Round(ctx context.Context, profile string) ops.LiveRound
	// Look asks sandboxes themselves.
	Look(ctx context.Context, items []sandbox.Sandbox) []ops.LiveLook
	// Page is the text of `sbx inspect REF`, so many cells wide.
	Page(ctx context.Context, ref sandbox.Ref, width int) (string, error)
	// Follow gives the last lines of a log and each new one, from one goroutine: ops.Live.Follow.
	Follow(ctx context.Context, ref sandbox.Ref, lines int, item func(any))
}

// Times of the dashboard.
const (
	pollFocused = 2 * time.Second  // between two rounds of a profile while the terminal has the focus
	pollAway    = 10 * time.Second // while it has not, or the profile fails
	lookAgain   = 15 * time.Second // a look is repeated after
	lookKeeps   = time.Minute      // a verdict of a look is shown for, beside newer records
	mostLooks   = 20               // sandboxes of one look
	beat        = time.Second      // between two redraws of ages
)

// feed is what is known of one profile.
type feed struct {
	profile string
	asking  bool
	round   ops.LiveRound // the last complete one
	known   bool          // there was one
	err     error         // why the newest round has failed; nil = it has not
	next    time.Time     // when it is asked again
	stuck   int64         // of its rows, by the newest verdicts
}

// stale reports whether what is shown of it is not the newest that was asked for.
func (f *feed) stale() bool { return f.known && f.err != nil }

// The messages of commands.
type (
	beatMsg  time.Time
	roundMsg struct{ ops.LiveRound }
	lookMsg  struct {
		looks []ops.LiveLook
		at    time.Time
	}
	pageMsg struct {
		ref  sandbox.Ref
		text string
		err  error
	}
)

// beatOn waits for the next redraw; unlike a tick of the library it ends with the dashboard.
func (m *Model) beatOn() tea.Cmd {
	return func() tea.Msg {
		select {
		case t := <-time.After(beat):
			return beatMsg(t)
		case <-m.ctx.Done():
			return nil
		}
	}
}

// pollDue asks the profiles whose time has come, each once at a time.
func (m *Model) pollDue(now time.Time) tea.Cmd {
	var all []tea.Cmd
	for _, f := range m.feeds {
		if m.paused || f.asking || now.Before(f.next) {
			continue
		}
		f.asking = true
		all = append(all, func() tea.Msg { return roundMsg{m.source.Round(m.ctx, f.profile)} })
	}
	return tea.Batch(all...)
}

// take keeps a round. A profile that fails keeps its last rows.
func (m *Model) take(r ops.LiveRound, now time.Time) {
	for _, f := range m.feeds {
		if f.profile != r.Profile {
			continue
		}
		f.asking, f.err = false, r.Err
		f.next = now.Add(pollFocused)
		if m.away || r.Err != nil {
			f.next = now.Add(pollAway)
		}
		if r.Err == nil {
			f.round, f.known = r, true
		}
	}
}

// lookDue looks at the rows of toLook that run, for their usage and where the record does not decide, one
// look at a time.
func (m *Model) lookDue(now time.Time) tea.Cmd {
	if m.looking || m.paused {
		return nil
	}
	var open []sandbox.Sandbox
	for _, r := range m.toLook() {
		seen, looked := m.looked[r.Ref()]
		if r.State == sandbox.StateRunning && (!looked || now.Sub(seen.At) >= lookAgain) && len(open) < mostLooks {
			open = append(open, r.Sandbox)
		}
	}
	if len(open) == 0 {
		return nil
	}
	m.looking = true
	return func() tea.Msg { return lookMsg{m.source.Look(m.ctx, open), m.now()} }
}

// openInspect reads the page about the sandbox under the cursor.
func (m *Model) openInspect() tea.Cmd {
	r, ok := m.current()
	if !ok {
		return nil
	}
	ref, width := r.Ref(), m.width
	m.page = &page{title: verbInspect + " " + r.ref, verb: verbInspect, ref: ref, lines: []string{"reading ..."}}
	return func() tea.Msg {
		text, err := m.source.Page(m.ctx, ref, width)
		return pageMsg{ref, text, err}
	}
}

// The verbs that have a page.
const (
	verbInspect = "inspect"
	verbLogs    = "logs"
)
