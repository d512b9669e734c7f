package views_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func TestWhyIsShortAndInWords(t *testing.T) {
	t.Parallel()
	reasons := func(r ...triage.Reason) []triage.Reason { return r }
	for name, tc := range map[string]struct {
		state   sandbox.State
		verdict triage.Verdict
		want    string
	}{
		"stuck":             {sandbox.StateRunning, triage.Verdict{Stuck: sandbox.True, Cause: sandbox.CauseBusyLoop}, "stuck: busy loop"},
		"stuck in a start":  {sandbox.StateProvisioning, triage.Verdict{Stuck: sandbox.True, Cause: sandbox.CauseProvisioning}, "stuck: not started"},
		"active":            {sandbox.StateRunning, triage.Verdict{Stuck: sandbox.False}, ""},
		"leaks":             {sandbox.StateRunning, triage.Verdict{Stuck: sandbox.False, Cause: sandbox.CauseLeak, Confidence: sandbox.Probable}, "memory leak"},
		"leaks, perhaps":    {sandbox.StateRunning, triage.Verdict{Stuck: sandbox.False, Cause: sandbox.CauseLeak, Confidence: sandbox.Hint}, "perhaps memory leak"},
		"not looked at":     {sandbox.StateRunning, triage.Verdict{Stuck: sandbox.Unknown, Cause: sandbox.CauseUnknown, Reasons: reasons(triage.ReasonNotLooked)}, ""},
		"looked, not known": {sandbox.StateRunning, triage.Verdict{Stuck: sandbox.Unknown, Cause: sandbox.CauseUnknown, Looked: true}, "unjudged"},
		"looked, a hint":    {sandbox.StateRunning, triage.Verdict{Stuck: sandbox.Unknown, Cause: sandbox.CauseHungIO, Looked: true}, "unjudged: waits on the network?"},
		"stuck in its end":  {sandbox.StateTerminating, triage.Verdict{Stuck: sandbox.True, Cause: sandbox.CauseEnding}, "stuck: not ended"},
		"terminating":       {sandbox.StateTerminating, triage.Verdict{Stuck: sandbox.Unknown, Reasons: reasons(triage.ReasonEnding)}, "terminating"},
		"ended well":        {sandbox.StateTerminated, triage.Verdict{Stuck: sandbox.False}, ""},
		"ended, not known":  {sandbox.StateFailed, triage.Verdict{Stuck: sandbox.False, Cause: sandbox.CauseUnknown}, ""},
		"out of memory":     {sandbox.StateFailed, triage.Verdict{Stuck: sandbox.False, Cause: sandbox.CauseOOMChild}, "out of memory"},
		"supervisor":        {sandbox.StateFailed, triage.Verdict{Stuck: sandbox.False, Cause: sandbox.CauseSupervisorLost}, "supervisor lost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := views.SandboxRow{Sandbox: sandbox.Sandbox{State: tc.state}, Verdict: tc.verdict}.Why()
			assert.Equal(t, tc.want, got)
			assert.LessOrEqual(t, len(got), 36)
		})
	}
}

func TestRowsForPeople(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	row := func(id string, state sandbox.State, age time.Duration) views.SandboxRow {
		s := sandbox.Sandbox{Provider: "p", ID: id, State: state}
		if age > 0 {
			s.CreatedAt = now.Add(-age)
		}
		return views.SandboxRow{Sandbox: s, Now: now}
	}
	rows := []views.SandboxRow{
		row("failed", sandbox.StateFailed, time.Second), row("paused", sandbox.StatePaused, time.Minute), row("old", sandbox.StateRunning, time.Hour),
		row("twin", sandbox.StateRunning, time.Hour), row("new", sandbox.StateRunning, time.Second), row("ageless", sandbox.StateRunning, 0),
	}
	slices.SortFunc(rows, func(a, b views.SandboxRow) int { return strings.Compare(views.RowOrder(a), views.RowOrder(b)) })
	var got []string
	for _, r := range rows {
		got = append(got, r.ID)
	}
	assert.Equal(t, "ageless new old twin paused failed", strings.Join(got, " "))
	assert.Equal(t, "t-1 name", views.TaskAndName(sandbox.Sandbox{TaskID: "t-1", Name: "name"}))
	assert.Equal(t, "name", views.TaskAndName(sandbox.Sandbox{Name: "name"}))
}

func TestShellLineCanBePasted(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `sh -c 'echo "a b"' --x=1,2 '=ls' ''`, views.ShellLine([]string{"sh", "-c", `echo "a b"`, "--x=1,2", "=ls", ""}))
	assert.Empty(t, views.ShellLine(nil))
}
