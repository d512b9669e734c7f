package tui

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// taskScene is a scene with a task that waits, one that runs and many that have failed.
func taskScene(t *testing.T) *scene {
	t.Helper()
	s := newScene()
	add := func(id, fields string) {
		var one ops.TaskState
		require.NoError(t, json.Unmarshal([]byte(`{"id": "t-`+id+`", "created_at": "2026-11-20T11:00:00Z", `+fields+`}`), &one.Task))
		s.tasks = append(s.tasks, one)
	}
	add("waits", `"state": "pending", "waits": "memory_budget"`)
	add("runs", `"state": "running", "attempts": [{"n": 1, "provider": "e2b", "sandbox": "i9z8y7x6w5v4u3t2s1r0q"}]`)
	for i := range 40 {
		add("failed"+strconv.Itoa(i), `"state": "failed", "attempts": [{"n": 1, "provider": "local", "sandbox": "k3v9x2mq7a", "exit": {"class": "oom", "cause": "oom", "confidence": "certain", "code": 137}}]`)
	}
	return s
}

// taskBoard is a dashboard that shows its tasks, read once.
func taskBoard(t *testing.T, s *scene, width, height int) *Model {
	t.Helper()
	m := board(t, s, width, height)
	m.cells.Plain = true
	press(m, "tab")
	require.Equal(t, tabTasks, m.tab, "it is the last tab")
	m.Update(m.tasksDue(noon())())
	return m
}

func frame(m *Model) string {
	lines := m.Frame()
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestTasks(t *testing.T) {
	t.Parallel()
	s := taskScene(t)
	m := taskBoard(t, s, 120, 24)
	text := frame(m)
	assert.Contains(t, text, "[Tasks 42]")
	assert.Contains(t, text, "newest first")
	assert.Contains(t, text, "> t-waits")
	assert.Contains(t, text, "why    waits for memory_budget\n type   sbx tasks show t-waits")
	assert.Empty(t, press(m, "l")[0])
	assert.Equal(t, "t-waits has no sandbox", m.notice)

	press(m, "j")
	s.pages["logs e2b/i9z8y7x6w5v4u3t2s1r0q"], s.pages["tasks show t-runs"] = "logs e2b/", "the page of the task"
	m.Update(press(m, "l")[0]())
	assert.Contains(t, frame(m), "logs e2b/")
	press(m, "esc")
	m.Update(press(m, "enter")[0]())
	assert.Contains(t, frame(m), "the page of the task")
	press(m, "esc", "y")
	assert.Equal(t, "copied: t-runs", m.notice)
	press(m, "Y")
	assert.Equal(t, "copied: sbx tasks show t-runs", m.notice)

	s.tasks = s.tasks[1:]
	m.Update(tasksMsg{tasks: s.tasks})
	assert.Equal(t, "t-runs", m.tasks.cursor, "the cursor stays on its task")
	press(m, "G")
	assert.Contains(t, frame(m), "> t-failed39")
	assert.Contains(t, frame(m), "why    it ran out of memory")
	press(m, "/", "r", "u", "n", "s", "enter")
	assert.Contains(t, frame(m), "[Tasks 1]")
	assert.NotNil(t, press(m, "esc", "tab")[1], "the sandboxes on the screen are looked at again")
	assert.Equal(t, tabStuck, m.tab)
}

// TestTasksAreReadOnceAtATime, every ten seconds, and not in a pause.
func TestTasksAreReadOnceAtATime(t *testing.T) {
	t.Parallel()
	m := NewModel(t.Context(), taskScene(t), noon, "sbx", output.Cells{Plain: true})
	assert.Contains(t, frame(m), "Tasks -", "nothing was read yet")
	read := m.tasksDue(noon())
	require.NotNil(t, read)
	assert.Nil(t, m.tasksDue(noon().Add(time.Hour)))
	m.Update(read())
	assert.Nil(t, m.tasksDue(noon().Add(9*time.Second)))
	assert.NotNil(t, m.tasksDue(noon().Add(tasksAgain)))
	m.Update(tasksMsg{})
	press(m, "p")
	assert.Nil(t, m.tasksDue(noon().Add(time.Hour)))
}

// TestTasksThatCannotBeRead keep what was read before, beside the error.
func TestTasksThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := taskBoard(t, s, 80, 24)
	assert.Contains(t, frame(m), "no task is recorded")
	m = board(t, s, 80, 24)
	m.cells.Plain = true
	press(m, "tab")
	assert.Contains(t, frame(m), "reading ...")
	broken := errors.New("the store is locked")
	m.Update(tasksMsg{err: broken})
	assert.Contains(t, frame(m), "the tasks could not be read: the store is locked")
	assert.Contains(t, frame(m), "[Tasks -]")
	m.Update(tasksMsg{tasks: taskScene(t).tasks})
	m.Update(tasksMsg{err: broken})
	assert.Contains(t, frame(m), "> t-waits")
	assert.Contains(t, frame(m), "the store is locked")
	m.Update(tea.WindowSizeMsg{Width: leastWidth, Height: leastHeight})
	assert.Len(t, m.Frame(), leastHeight)
}
