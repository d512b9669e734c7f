package tui

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

// tab is a group of sandboxes by their verdict.
type tab int8

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

// row is a sandbox of the table. It points to what was read: to copy ten thousand records again and again takes
// longer than all the rest.
type row struct {
	*sandbox.Sandbox
	Verdict *triage.Verdict // of the newest look, else of the record

	// What the record says. It is read once: there may be ten thousand of 1 kB each.
	recorded      *triage.Verdict
	born          int64 // Unix time in ms; 0 = not known
	recordedGroup tab
	ended         bool
	needsLook     bool // it does not decide

	// What rebuild says.
	stale     bool          // its profile does not answer
	group     tab           // every row is also in tabAll
	rank      uint64        // in the order of the table, the lowest first
	age, idle time.Duration // -1 = not known
	usage     *views.UsageRow
	seen      *look.LiveLook // the newest look, if it is new enough; nil = none is
}

// newRow is the row of a sandbox, before rebuild.
func newRow(j *look.LiveRow) row {
	r := row{Sandbox: j.Sandbox, Verdict: &j.Verdict, recorded: &j.Verdict, ended: j.Sandbox.State.Ended(), needsLook: j.Verdict.NeedsLook()}
	if at, _ := r.Born(); !at.IsZero() {
		r.born = at.UnixMilli()
	}
	r.recordedGroup = r.groupOf()
	return r
}

// newRound is a round with its rows, in the room that those of an earlier one had. What it reads of the records takes too
// long for Update.
func newRound(r look.LiveRound, room []row) roundMsg {
	rows := slices.Grow(room[:0], len(r.Rows))
	for i := range r.Rows {
		rows = append(rows, newRow(&r.Rows[i]))
	}
	return roundMsg{r, rows}
}

// ref is how people write it.
func (r *row) ref() string { return r.Ref().String() }

// line is the row as `ls` prints it.
func (r *row) line(now time.Time) views.SandboxRow {
	return views.SandboxRow{Sandbox: *r.Sandbox, Verdict: *r.Verdict, Now: now}
}

// judge gives a row its newest verdict, and computes once what it is sorted by.
func (m *Model) judge(r *row, stale bool, now time.Time) {
	r.stale, r.Verdict, r.group, r.seen, r.usage = stale, r.recorded, r.recordedGroup, nil, nil
	if seen, ok := m.lookOf(r, now); ok && !r.ended {
		r.seen = seen
		if r.usage = (*views.UsageRow)(seen.Usage); r.needsLook {
			r.Verdict = &seen.Verdict
			r.group = r.groupOf()
		}
	}
	r.setAge(now)
	if m.order == byIdle { // a row that is drawn has its newest times then
		r.setIdle(now)
	}
	r.rank = m.rankOf(r)
}

func (r *row) setAge(now time.Time) {
	r.age = -1
	if age := now.UnixMilli() - r.born; r.born != 0 && age >= 0 {
		r.age = time.Duration(min(age, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
}

func (r *row) setIdle(now time.Time) {
	r.idle = -1
	if idle, known := r.Idle(now); known {
		r.idle = idle
	}
}

func (r *row) groupOf() tab {
	switch v := r.Verdict; {
	case v.Stuck == sandbox.True:
		return tabStuck
	case r.ended:
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
	m.counts, m.steps.all = [tabs]int{}, [tabs]int64{}
	m.rows = m.rows[:0]
	m.unknownMatches = nil
	for _, f := range m.feeds {
		f.stuck, f.open, f.living = 0, 0, 0
		for i := range f.rows {
			r := &f.rows[i]
			m.judge(r, f.stale(), now)
			if r.group == tabStuck {
				f.stuck++
			}
			if r.group != tabEnded {
				f.living++
			}
			if r.group == tabUnjudged {
				f.open++
			}
			m.countRow(r, now)
		}
	}
	m.unlisted = m.goneFromLists()
	for i := range m.unlisted {
		m.judge(&m.unlisted[i], false, now)
		m.countRow(&m.unlisted[i], now)
	}
	m.suspectFigures()
	m.sortRows(m.rows)
	m.keepMarks()
	m.rebuildTasks()
	m.follow()
}

// all are the rows of every tab.
func (m *Model) all() iter.Seq[*row] {
	return func(yield func(*row) bool) {
		for _, f := range m.feeds {
			for i := range f.rows {
				if !yield(&f.rows[i]) {
					return
				}
			}
		}
		for i := range m.unlisted {
			if !yield(&m.unlisted[i]) {
				return
			}
		}
	}
}

// countRow counts a row, and chooses it where the tab and the filter want it.
func (m *Model) countRow(r *row, now time.Time) {
	m.steps.all[r.group]++
	m.steps.all[tabAll]++
	if !m.wants(r, now) {
		return
	}
	m.counts[r.group]++
	m.counts[tabAll]++
	if m.tab == tabAll || m.tab == r.group {
		m.rows = append(m.rows, r)
	}
}

// keepEnded remembers what was ended here: most providers drop it from their lists.
func (m *Model) keepEnded(endings []sandbox.Ending) {
	for _, e := range endings {
		if e.Outcome != sandbox.OutcomeVerified || m.gone[e.Ref] != nil {
			continue
		}
		box := sandbox.Sandbox{Provider: e.Ref.Provider, ID: e.Ref.ID}
		for r := range m.all() {
			if r.Ref() == e.Ref {
				box = *r.Sandbox
			}
		}
		box.State, box.EndedAt = sandbox.StateTerminated, m.now()
		j := &look.LiveRow{Sandbox: &box}
		j.Verdict = triage.Verdict{Stuck: sandbox.False, Reasons: []triage.Reason{"ended from this screen, verified"}}
		if m.gone == nil {
			m.gone = map[sandbox.Ref]*look.LiveRow{}
		}
		m.gone[e.Ref] = j
	}
}

// goneFromLists are those of them that no list has, by their references.
func (m *Model) goneFromLists() (all []row) {
	if len(m.gone) == 0 {
		return nil
	}
	left := maps.Clone(m.gone)
	for _, f := range m.feeds {
		for i := range f.rows {
			delete(left, f.rows[i].Ref())
		}
	}
	for _, j := range left {
		all = append(all, newRow(j))
	}
	slices.SortFunc(all, func(a, b row) int { return strings.Compare(a.ref(), b.ref()) })
	return all
}

func (r *row) searchText(now time.Time) string {
	words := []string{views.TaskAndName(*r.Sandbox), r.ref(), string(r.State), r.line(now).Why()}
	for key, value := range r.Labels {
		words = append(words, key+"="+value)
	}
	return strings.Join(words, " ")
}

// rankOf is what rows are sorted by: one number, since it is compared more than a hundred thousand times. The oldest
// is first, with an unknown age before it, where it is seen.
func (m *Model) rankOf(r *row) uint64 {
	const bits = 60 // of a time in milliseconds; the group is above them
	rank := func(d time.Duration) uint64 { return 1<<bits - 1 - uint64(max(0, d.Milliseconds())) }
	ageRank := func() uint64 {
		if r.age < 0 {
			return 0
		}
		return rank(r.age)
	}
	switch m.order {
	case byProblem:
		return uint64(r.group)<<bits | ageRank()
	case byAge:
		return ageRank()
	case byIdle:
		if r.idle < 0 {
			return 1 << bits
		}
		return rank(r.idle)
	case byRef, orders:
	}
	return 0
}

// ranked is a row with its rank beside it.
type ranked struct {
	rank uint64
	row  *row
}

// sortRows sorts by rank, and those of one rank by their references, so that no row moves without a reason.
func (m *Model) sortRows(rows []*row) {
	m.sorting = m.sorting[:0]
	for _, r := range rows {
		m.sorting = append(m.sorting, ranked{r.rank, r})
	}
	slices.SortFunc(m.sorting, func(a, b ranked) int {
		switch {
		case a.rank < b.rank:
			return -1
		case a.rank > b.rank:
			return 1
		}
		return cmp.Or(strings.Compare(a.row.Provider, b.row.Provider), strings.Compare(a.row.ID, b.row.ID))
	})
	for i, one := range m.sorting {
		rows[i] = one.row
	}
	if m.reverse {
		slices.Reverse(rows)
	}
}

// follow finds the cursor's sandbox or task again. Where it is gone, the cursor stays at its place on the screen. Until
// a key is pressed it is at the first row, so that the worst one is under it.
func (m *Model) follow() {
	if !m.held {
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
