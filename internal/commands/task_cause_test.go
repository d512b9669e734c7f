package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/views"
)

// TestTheFailurePageFitsAndTells shows a task that ran out of memory twice, as it is
// read at night.
func TestTheFailurePageFitsAndTells(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	b.tty, b.width = true, 80
	one := failedTask("t-leak00000001", noon.Add(-time.Hour))
	first := &one.Attempts[0]
	first.MemoryMB, first.Gone = 256, "the provider's record says that it has ended"
	first.Exit.Evidence = []sandbox.Evidence{{What: "oom_kill", Value: "1", Source: "kernel: memory.oom_control (hybrid)"}}
	first.Retry = &task.Retry{Again: true, Why: "it ran out of memory: retry with twice as much", MemoryMB: 512}
	second := *first
	second.N, second.Sandbox, second.MemoryMB = 2, "bbbb2222", 512
	second.Retry = &task.Retry{Why: "it ended like this a second time (oom)"}
	one.Attempts = append(one.Attempts, second)
	keepTasks(t, b, one)
	r := b.run(t, "tasks show t-leak")
	for line := range strings.Lines(r.stdout) {
		assert.LessOrEqual(t, len([]rune(plainWords(line))), 80, line)
	}
	golden(t, "task-oom", r.stdout)
}

// TestWhatATaskKeptOfItsOutputIsShown: its sandbox is deleted, and its provider may have no log of it.
func TestWhatATaskKeptOfItsOutputIsShown(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	one := failedTask("t-tail00000001", noon.Add(-time.Hour))
	one.Attempts[0].Tail = []string{"no such test", "\x1b[31mred"}
	keepTasks(t, b, one)
	r := b.run(t, "tasks show t-tail")
	assert.Contains(t, r.stdout, "Last output\n  no such test\n")
	assert.Contains(t, r.stdout, "red\n")
	assert.NotContains(t, r.stdout, "\x1b")
}

// TestWhatNeverStartedHasNoLog: the folder was missing, so no program has written anything.
func TestWhatNeverStartedHasNoLog(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	one := failedTask("t-fold00000001", noon.Add(-time.Hour))
	a := &one.Attempts[0]
	a.StartedAt = time.Time{}
	a.Exit.Class, a.Exit.Cause = sandbox.ClassEnvironment, sandbox.CauseUnknown
	keepTasks(t, b, one)
	r := b.run(t, "tasks show t-fold")
	assert.Contains(t, r.stdout, "next: sbx run --workdir FOLDER -- COMMAND\n")
	assert.NotContains(t, r.stdout, "sbx logs")
	assert.NotContains(t, r.stdout, "unknown (", "of an unknown cause nothing is certain")
}

func plainWords(line string) string {
	return strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[m", "", "\x1b[0m", "", "\n", "").Replace(line)
}

func TestCauseWords(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]task.Exit{
		"it ran out of memory (certain)":                                         {Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM, Confidence: sandbox.Certain},
		"a child process ran out of memory (certain)":                            {Class: sandbox.ClassKilledUnknown, Cause: sandbox.CauseOOMChild, Confidence: sandbox.Certain},
		"unknown: a limit of the provider, the agent's own kill, or an operator": {Class: sandbox.ClassKilledUnknown, Cause: sandbox.CauseUnknown},
		"the command or its folder was not found, or it is not executable":       {Class: sandbox.ClassEnvironment},
		"the request to create its sandbox was refused":                          {Class: sandbox.ClassUsage, Evidence: []sandbox.Evidence{{What: "create", Value: "prod: create: HTTP 402", Source: "sbx"}}},
		"it was inactive, and sbx stopped it (certain)":                          {Class: sandbox.ClassTimeout, Cause: sandbox.CauseInactivity, Confidence: sandbox.Certain},
		"unknown": {Class: sandbox.ClassUnknown},
	} {
		assert.Equal(t, want, views.CauseWords(e))
	}
}

func TestFarewellOfAFailure(t *testing.T) {
	t.Parallel()
	one := failedTask("t-leak00000001", noon)
	one.Attempts[0].MemoryMB = 512
	one.Attempts[0].Retry = &task.Retry{Why: "all 3 attempts are used up"}
	text := strings.Join(views.TaskRow{Task: one, Now: noon}.ExitSummary(), "\n")
	for _, want := range []string{
		"likely cause: it ran out of memory (certain)", "not tried again: all 3 attempts are used up", "gone: all its sandboxes",
		"next: sbx run --memory 1024M ...",
	} {
		assert.Contains(t, text, want)
	}
	one.VerifiedAt = time.Time{}
	assert.Contains(t, strings.Join(views.TaskRow{Task: one, Now: noon}.ExitSummary(), "\n"), "not verified gone yet")
}

func TestAProgramThatSucceededIsNotBlamed(t *testing.T) {
	t.Parallel()
	one := failedTask("t-push00000001", noon)
	one.Attempts[0].Exit = &task.Exit{Class: sandbox.ClassOK, Evidence: []sandbox.Evidence{{What: "oom_kill", Value: "0", Source: "kernel"}}}
	one.Spec.Push, one.Publish = "origin=fix", task.Publish{State: task.PublishRefused, Target: "origin=fix", Message: "the branch has moved"}
	text := strings.Join(views.TaskRow{Task: one, Now: noon}.ExitSummary(), "\n")
	assert.Contains(t, text, "likely cause: the program succeeded, but its work was not published")
	assert.Contains(t, text, "publish: refused (the branch has moved)")
	assert.NotContains(t, text, "evidence:")
}
