package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// tab is a group of sandboxes by their verdict.
type tab int

// The tabs, in the order of the screen.
const (
	tabStuck tab = iota
	tabRisk
	tabUnjudged
	tabWorking
	tabEnded
	tabAll
	tabTasks // of no sandbox
	tabs
)

func (t tab) title() string {
	return [tabs]string{"Stuck", "At risk", "Not judged", "Working", "Ended", "All", "Tasks"}[t]
}

// row is a sandbox of the table.
type row struct {
	views.SandboxRow

	ref       string
	stale     bool          // its profile does not answer
	needsLook bool          // its record does not decide
	group     tab           // every row is also in tabAll
	age, idle time.Duration // -1 = not known
	usage     *views.UsageRow
}

// newRow computes once what a row is sorted and drawn by.
func (m *Model) newRow(j fleet.Judged, stale bool, now time.Time) *row {
	m.pool = append(m.pool, row{SandboxRow: views.SandboxRowOf(j, now), ref: j.Sandbox.Ref().String(), stale: stale, needsLook: j.Verdict.NeedsLook(), age: -1, idle: -1})
	r := &m.pool[len(m.pool)-1]
	if seen, ok := m.lookOf(r, now); ok {
		if r.usage = (*views.UsageRow)(seen.Usage); r.needsLook {
			r.Verdict = seen.Verdict
		}
	}
	if age, source := r.Age(now); source != sandbox.AgeUnknown {
		r.age = age
	}
	if idle, known := r.Idle(now); known {
		r.idle = idle
	}
	r.group = r.groupOf()
	return r
}

func (r *row) groupOf() tab {
	switch v := r.Verdict; {
	case v.Stuck == sandbox.True:
		return tabStuck
	case r.State.Ended():
		return tabEnded
	case v.Suspected():
		return tabRisk
	case v.Unjudged():
		return tabUnjudged
	}
	return tabWorking
}

// order is what the table is sorted by.
type order int

// The orders, as `o` goes through them.
const (
	byProblem order = iota
	byAge
	byIdle
	byRef
	orders
)

func (o order) title() string { return [orders]string{"problem", "age", "idle", "ref"}[o] }

// rebuild makes the rows of the tab from what is known, and keeps the cursor on its sandbox.
func (m *Model) rebuild() {
	now := m.now()
	m.counts = [tabs]int{}
	m.rows = m.rows[:0]
	total := 0
	for _, f := range m.feeds {
		total += len(f.round.Rows)
	}
	m.pool = slices.Grow(m.pool[:0], total) // never moved below: rows point into it
	m.undecided = nil
	for _, f := range m.feeds {
		f.stuck = 0
		for _, j := range f.round.Rows {
			r := m.newRow(j, f.stale(), now)
			if r.group == tabStuck {
				f.stuck++
			}
			if !m.wants(r, now) {
				continue
			}
			m.counts[r.group]++
			m.counts[tabAll]++
			if m.tab == tabAll || m.tab == r.group {
				m.rows = append(m.rows, r)
			}
		}
	}
	slices.SortFunc(m.rows, m.compare)
	m.keepMarks()
	m.rebuildTasks()
	m.follow()
}

func (r *row) searchText() string {
	return views.TaskAndName(r.Sandbox) + " " + r.ref + " " + string(r.State) + " " + r.Why()
}

// compare sorts rows; those of one rank by their references, so that no row moves without a reason.
func (m *Model) compare(a, b *row) int {
	n := 0
	switch m.order {
	case byProblem:
		n = cmp.Or(cmp.Compare(a.group, b.group), compareAge(a, b))
	case byAge:
		n = compareAge(a, b)
	case byIdle:
		n = cmp.Compare(b.idle, a.idle)
	case byRef, orders:
	}
	n = cmp.Or(n, strings.Compare(a.ref, b.ref))
	if m.reverse {
		return -n
	}
	return n
}

// compareAge puts the oldest first, unknown ages before them, where they are seen.
func compareAge(a, b *row) int {
	if a.age < 0 || b.age < 0 {
		return cmp.Compare(a.age, b.age)
	}
	return cmp.Compare(b.age, a.age)
}

// follow finds the cursor's sandbox or task again. Where it is gone, the cursor stays at its place on the screen; at
// the first row it stays until a key moves it, so that the worst one is under it.
func (m *Model) follow() {
	if m.at == 0 {
		m.moveTo(0)
		return
	}
	if i := m.find(); i >= 0 {
		m.at = i
	}
	m.moveTo(m.at)
}

// moveTo puts the cursor on a row, and scrolls so far that it is seen.
func (m *Model) moveTo(at int) {
	m.at = max(0, min(at, m.length()-1))
	m.cursor, m.tasks.cursor = sandbox.Ref{}, ""
	if r, ok := m.current(); ok {
		m.cursor = r.Ref()
	}
	if t, ok := m.currentTask(); ok {
		m.tasks.cursor = t.ID
	}
	height := m.tableHeight()
	m.top = max(min(m.top, m.at), m.at-height+1)
	m.top = max(0, min(m.top, m.length()-height))
}

// shown are the rows on the screen; none while the tasks are there.
func (m *Model) shown() []*row {
	if m.tab == tabTasks {
		return nil
	}
	return m.rows[m.top:min(len(m.rows), m.top+m.tableHeight())]
}

// current is the row under the cursor.
func (m *Model) current() (*row, bool) {
	if len(m.rows) == 0 {
		return nil, false
	}
	return m.rows[m.at], true
}
