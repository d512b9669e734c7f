package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

// tasksAgain is the time between two reads of the tasks.
const tasksAgain = 10 * time.Second

// taskList are the tasks on record, the newest first.
type taskList struct {
	all    []views.TaskRow
	rows   []views.TaskRow // that match the filter
	known  bool            // they were read
	asking bool
	err    error // why the newest read has failed; nil = it has not
	next   time.Time
	cursor string // the id of the task under the cursor
}

type tasksMsg struct {
	tasks []ops.TaskState
	err   error
}

// tasksDue reads the tasks if their time has come, once at a time.
func (m *Model) tasksDue(now time.Time) tea.Cmd {
	if m.paused || m.tasks.asking || !due(now, m.tasks.next) {
		return nil
	}
	m.tasks.asking = true
	return func() tea.Msg {
		tasks, err := m.source.Tasks(m.ctx)
		return tasksMsg{tasks, err}
	}
}

// takeTasks keeps what was read. A read that fails keeps the tasks of the one before.
func (m *Model) takeTasks(msg tasksMsg, now time.Time) {
	t := &m.tasks
	t.asking, t.next, t.err = false, now.Add(tasksAgain), msg.err
	if msg.err == nil {
		t.known, t.all = true, t.all[:0]
		for _, one := range msg.tasks {
			t.all = append(t.all, views.TaskRowOf(one, now))
		}
	}
	m.rebuildTasks()
	if m.tab == tabTasks {
		m.follow()
	}
}

// rebuildTasks chooses the tasks that match the filter.
func (m *Model) rebuildTasks() {
	t, words := &m.tasks, strings.Fields(strings.ToLower(m.filter))
	t.rows = t.rows[:0]
	for _, r := range t.all {
		if hasAll(r.SearchText(), words) {
			t.rows = append(t.rows, r)
		}
	}
	m.counts[tabTasks] = len(t.rows)
}

// find is where the cursor's sandbox or task is now; -1 = it is gone.
func (m *Model) find() int {
	if m.tab == tabTasks {
		return slices.IndexFunc(m.tasks.rows, func(r views.TaskRow) bool { return r.ID == m.tasks.cursor })
	}
	return slices.IndexFunc(m.rows, func(r *row) bool { return r.Ref() == m.cursor })
}

// length is how many rows the open tab has.
func (m *Model) length() int {
	if m.tab == tabTasks {
		return len(m.tasks.rows)
	}
	return len(m.rows)
}

// currentTask is the task under the cursor.
func (m *Model) currentTask() (views.TaskRow, bool) {
	if m.tab != tabTasks || len(m.tasks.rows) == 0 {
		return views.TaskRow{}, false
	}
	return m.tasks.rows[m.at], true
}

// taskLines are the tasks in place of the sandboxes.
func (m *Model) taskLines() []string {
	height := m.tableHeight()
	shown := slices.Clone(m.tasks.rows[m.top:min(len(m.tasks.rows), m.top+height)])
	for i := range shown {
		shown[i].Now = m.now()
	}
	lines := output.CellTable(m.cells, views.TaskColumns(), shown, m.listWidth()-2, m.now())
	for i := range lines {
		mark := "  "
		if i == m.at-m.top+1 {
			mark = "> "
		}
		lines[i] = mark + lines[i]
	}
	if len(shown) == 0 && m.noTasks() != "" {
		lines = []string{m.line(say("  "+m.noTasks(), output.Muted))}
	}
	return m.fill(lines, height+1)
}

// noTasks says why no task is shown.
func (m *Model) noTasks() string {
	switch {
	case m.tasks.known && m.filter != "" && len(m.tasks.all) > 0:
		return "nothing here matches /" + m.filter + "; esc removes the filter"
	case m.tasks.known:
		return "no task is recorded"
	case m.tasks.err != nil:
		return ""
	}
	return "reading ..."
}

// taskSubject is what is known of the task under the cursor, and what to type.
func (m *Model) taskSubject() subject {
	var failed string
	if err := m.tasks.err; err != nil {
		failed = "the tasks could not be read: " + err.Error()
	}
	t, ok := m.currentTask()
	if !ok {
		return subject{"tasks", say("", output.Plain), []detail{{"error", failed, 0, output.Bad}}}
	}
	return subject{t.ID, say(string(t.State), t.Tone()), []detail{
		{"error", failed, 0, output.Bad},
		{"task", t.Detail(), 2, output.Plain},
		{"why", t.Why(), 1, output.Plain},
		{"type", m.program + " " + verbTask + " " + t.ID, 0, output.Accent},
	}}
}
