package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// Source is what the dashboard reads and acts through. Its methods may take long; they are called outside of Update,
// concurrently, and end with their context.
type Source interface {
	Reader
	StepReader
	Actor
}

// StepReader answers the steps of the runbook.
type StepReader interface {
	// Investigation answers the questions of the first steps of the runbook, by the newest verdict of each sandbox.
	Investigation(ctx context.Context, judged []fleet.Judged) ([]StepPage, error)
	// Cleanup says how cleanup runs, by its record.
	Cleanup(ctx context.Context) CleanupWord
}

// Reader reads.
type Reader interface {
	// Profiles are those that are read, in their order.
	Profiles() []string
	// Round reads one profile.
	Round(ctx context.Context, profile string) look.LiveRound
	// Look asks sandboxes themselves.
	Look(ctx context.Context, items []sandbox.Sandbox) []look.LiveLook
	// Tasks are those on record, the newest first.
	Tasks(ctx context.Context) ([]ops.TaskState, error)
	// Page is the text of `sbx inspect REF` with the timeline, `sbx tasks show ID` or `sbx cleanup status`, so many cells wide.
	Page(ctx context.Context, verb string, ref sandbox.Ref, width int) (string, error)
	// Follow gives the last lines of a log and each new one, from one goroutine: look.Live.Follow.
	Follow(ctx context.Context, ref sandbox.Ref, lines int, item func(any))
}

// Actor acts.
type Actor interface {
	// Plan reads what a verb would do, and changes nothing: terminate and stop to these sandboxes, cleanup
	// and reconcile to what they select.
	Plan(ctx context.Context, verb string, boxes []sandbox.Sandbox, width int) (Plan, error)
	// Do carries a plan out. Production are the production profiles that were named. Report gets a line as
	// soon as it is known, one at a time.
	Do(ctx context.Context, p Plan, production []string, report func(line string)) ops.ActResult
	// Keep keeps sandboxes from being ended for a time, and says of each what came of it.
	Keep(ctx context.Context, refs []sandbox.Ref, d time.Duration) []string
	// Runbook works at the runbook of stuck sandboxes until it is over. An error is why it could not begin, or
	// what went wrong.
	Runbook(ctx context.Context, width int, watch RunbookWatch) error
}

// RunbookWatch is what a run of a runbook reports to. Its functions are called one at a time.
type RunbookWatch struct {
	Show func(rail views.Rail) // each time it changes
	Note func(line string)     // what its acts do
	// Ask gets the answer to a question; the page, if any, shows what it is about. False = there is none.
	Ask func(ctx context.Context, q ops.Question, page string) (text string, answered bool)
}

// Plan is an act with its page and its questions.
type Plan struct {
	Act       *ops.Act
	Page      string
	Questions []ops.Question // all have to be answered; none = nothing can be done
}

// Times of the dashboard.
const (
	pollFocused = 2 * time.Second  // between two rounds of a profile while the terminal has the focus
	pollAway    = 10 * time.Second // while it has not, or the profile fails
	lookAgain   = 15 * time.Second // a look is repeated after
	sweepAgain  = time.Minute      // the same, of a row that is not on the screen
	lookKeeps   = 2 * time.Minute  // a verdict of a look is shown for, beside newer records
	mostLooks   = 20               // sandboxes of one look
	mostSwept   = 300              // rows that are looked at although they are not on the screen: 5 a second
	lookPace    = 5 * time.Second  // between two looks, after so many: each row that leaves the screen as working brings the next
	beat        = time.Second      // between two redraws of ages
)

// feed is what is known of one profile.
type feed struct {
	profile string
	asking  bool
	asked   time.Time      // since when, while it is
	round   look.LiveRound // the last complete one
	rows    []row          // of it
	room    []row          // that nothing points to, for those of the next one
	known   bool           // there was one
	err     error          // why the newest round has failed; nil = it has not
	newest  fleet.Connection
	next    time.Time // when it is asked again
	stuck   int64     // of its rows, by the newest verdicts
	open    int       // of its rows, which no verdict decides yet
	living  int       // of its rows, which have not ended
}

// stale reports whether what is shown of it is not the newest that was asked for.
func (f *feed) stale() bool { return f.known && f.err != nil }

// The messages of commands.
type (
	beatMsg   time.Time
	noticeMsg string // a note or a warning of another goroutine
	roundMsg  struct {
		look.LiveRound

		rows []row
	}
	lookMsg struct {
		looks []look.LiveLook
		at    time.Time
		swept bool // of rows that are not on the screen
	}
	pageMsg struct {
		verb string
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

// due reports whether a time has come. One that is further ahead than any is set was set before the clock
// went back.
func due(now, next time.Time) bool {
	return !now.Before(next) || next.Sub(now) > max(pollAway, tasksAgain)
}

// pollDue asks the profiles whose time has come, each once at a time.
func (m *Model) pollDue(now time.Time) tea.Cmd {
	var all []tea.Cmd
	for _, f := range m.feeds {
		if m.paused || f.asking || !due(now, f.next) {
			continue
		}
		f.asking, f.asked = true, now
		room := f.room
		f.room = nil
		all = append(all, func() tea.Msg { return newRound(m.source.Round(m.ctx, f.profile), room) })
	}
	return tea.Batch(all...)
}

// take keeps a round. A profile that fails keeps its last rows.
func (m *Model) take(r roundMsg, now time.Time) {
	for _, f := range m.feeds {
		if f.profile != r.Profile {
			continue
		}
		f.asking, f.err, f.newest = false, r.Err, r.Connection
		f.next = now.Add(pollFocused)
		if m.away || r.Err != nil {
			f.next = now.Add(pollAway)
		}
		if r.Err == nil {
			f.round, f.room, f.rows, f.known = r.LiveRound, f.rows, r.rows, true
		}
	}
}

// lookDue looks at the rows of toLook, for their usage and where the record does not decide. When that is done, it
// looks at those that are not on the screen and wait for a verdict. Of both there is one look at a time.
func (m *Model) lookDue(now time.Time) tea.Cmd {
	if look := m.look(&m.looking, m.toLook(), lookAgain, now); m.looking {
		return look
	}
	return m.look(&m.sweeping, m.toSweep(), sweepAgain, now)
}

// look asks those of rows that run and were not asked for some time.
func (m *Model) look(busy *bool, rows []*row, again time.Duration, now time.Time) tea.Cmd {
	if *busy || m.paused || len(m.looked) >= mostSwept && !due(now, m.nextLook) {
		return nil
	}
	var open []sandbox.Sandbox
	for _, r := range rows {
		seen, looked := m.looked[r.Ref()]
		if r.State == sandbox.StateRunning && (!looked || now.Sub(seen.At).Abs() >= again) && len(open) < mostLooks {
			open = append(open, *r.Sandbox)
		}
	}
	if len(open) == 0 {
		return nil
	}
	*busy, m.nextLook = true, now.Add(lookPace)
	swept := busy == &m.sweeping
	return func() tea.Msg { return lookMsg{m.source.Look(m.ctx, open), m.now(), swept} }
}

// toSweep are the rows whose records do not decide, the oldest ones where there are many.
func (m *Model) toSweep() []*row {
	if m.sweeping || m.paused || m.away {
		return nil
	}
	var rows []*row
	for r := range m.all() {
		if r.needsLook && !r.stale {
			rows = append(rows, r)
		}
	}
	if len(rows) > mostSwept {
		slices.SortFunc(rows, func(a, b *row) int { return cmp.Compare(b.age, a.age) })
		rows = rows[:mostSwept]
	}
	return rows
}

// openPage reads a page about the sandbox or task under the cursor.
func (m *Model) openPage() tea.Cmd {
	if m.showsRunbook() {
		return m.leadOn()
	}
	if t, ok := m.currentTask(); ok {
		return m.openPageOf(verbTask, sandbox.Ref{ID: t.ID})
	}
	r, ok := m.current()
	if !ok {
		return nil
	}
	return m.openPageOf(verbInspect, r.Ref())
}

func (m *Model) openPageOf(verb string, ref sandbox.Ref) tea.Cmd {
	m.page = &page{title: strings.TrimSpace(verb + " " + ref.String()), verb: verb, ref: ref, lines: []string{"reading ..."}}
	width := m.pageWidth()
	return func() tea.Msg {
		text, err := m.source.Page(m.ctx, verb, ref, width)
		return pageMsg{verb, ref, text, err}
	}
}

// The verbs that have a page.
const (
	verbInspect = "inspect"
	verbLogs    = "logs"
	verbTask    = "tasks show"
	verbCleanup = "cleanup status"
)
