package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// TestTheTemplatesMatrix is the matrix a to e of the application: the row and what runs,
// observed twice, for a sandbox of two hours.
func TestTheTemplatesMatrix(t *testing.T) {
	t.Parallel()
	type row = store.TaskRow
	at := noon.Add(-100 * time.Minute)
	deleted := func(r row) row { r.DeletedAt = at; return r }
	keep := func(r row, minutes int) row { r.KeepAlive, r.MaxDurationMinutes = true, minutes; return r }
	of := func(status string) row { return row{Status: status, MaxDurationMinutes: 300} }
	for name, c := range map[string]struct {
		row    row
		state  sandbox.State // "" = 404
		cause  reconcile.Cause
		action reconcile.Action
	}{
		"a: completed runs":             {of("completed"), sandbox.StateRunning, reconcile.CauseLeak, reconcile.ActTerminate},
		"a: error runs":                 {of("error"), sandbox.StateRunning, reconcile.CauseLeak, reconcile.ActTerminate},
		"a: stopped runs":               {of("stopped"), sandbox.StateRunning, reconcile.CauseLeak, reconcile.ActTerminate},
		"a: deleted runs":               {deleted(of("processing")), sandbox.StateRunning, reconcile.CauseLeak, reconcile.ActTerminate},
		"a: completed, deleted runs":    {deleted(of("completed")), sandbox.StateRunning, reconcile.CauseLeak, reconcile.ActTerminate},
		"b: kept, completed":            {keep(of("completed"), 300), sandbox.StateRunning, reconcile.CauseKept, reconcile.ActNone},
		"b: kept, error":                {keep(of("error"), 300), sandbox.StateRunning, reconcile.CauseKept, reconcile.ActNone},
		"b: kept, completed, deleted":   {keep(deleted(of("completed")), 300), sandbox.StateRunning, reconcile.CauseKept, reconcile.ActNone},
		"b: kept, without a limit":      {keep(of("completed"), 0), sandbox.StateRunning, reconcile.CauseKept, reconcile.ActNone},
		"b: kept, beyond max_duration":  {keep(of("completed"), 60), sandbox.StateRunning, reconcile.CauseOverdue, reconcile.ActTerminate},
		"b: kept, stopped":              {keep(of("stopped"), 300), sandbox.StateRunning, reconcile.CauseLeak, reconcile.ActTerminate},
		"b: kept, at work, deleted":     {keep(deleted(of("processing")), 300), sandbox.StateRunning, reconcile.CauseUnclear, reconcile.ActNone},
		"c: processing, stopped":        {of("processing"), sandbox.StateStopped, reconcile.CauseZombie, reconcile.ActReport},
		"c: processing, ended":          {of("processing"), sandbox.StateTerminated, reconcile.CauseZombie, reconcile.ActReport},
		"c: processing, 404":            {of("processing"), "", reconcile.CauseZombie, reconcile.ActReport},
		"c: pending, 404":               {of("pending"), "", reconcile.CauseZombie, reconcile.ActReport},
		"in order: processing runs":     {of("processing"), sandbox.StateRunning, reconcile.CauseAgrees, reconcile.ActNone},
		"in order: kept and processing": {keep(of("processing"), 1), sandbox.StateRunning, reconcile.CauseAgrees, reconcile.ActNone},
		"a status of tomorrow":          {of("archived"), sandbox.StateRunning, reconcile.CauseUnclear, reconcile.ActNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.source.Tasks, s.source.Mark, s.source.AsOf = true, nil, noon.Add(-time.Minute)
			c.row.ID, c.row.SandboxID, c.row.CreatedAt, c.row.UpdatedAt = "t1", "x", noon.Add(-121*time.Minute), at
			s.on(reconcile.Task(c.row))
			if c.state != "" {
				s.box("x", old, state(c.state))
			}
			row := only(t, s.proved(t), "x")
			assert.Equal(t, c.cause, row.Cause, row.Reason)
			assert.Equal(t, c.action, row.Action, row.Reason)
		})
	}
}

func TestTheTemplatesOtherRows(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.source.Tasks, s.source.AsOf = true, noon.Add(-time.Minute)
	at := noon.Add(-100 * time.Minute)
	for _, id := range []string{"t1", "t2"} { // e: two rows with one sandbox
		s.on(reconcile.Task(store.TaskRow{ID: id, Status: "completed", SandboxID: "shared", CreatedAt: at, UpdatedAt: at}))
	}
	s.box("shared", old)
	s.box("orphan", old) // d: a running session without a row
	s.box("young", 5*time.Minute)
	plan := s.proved(t)
	assert.Equal(t, reconcile.CauseDuplicate, only(t, plan, "shared").Cause)
	assert.Equal(t, reconcile.ActTerminate, only(t, plan, "orphan").Action)
	assert.Equal(t, reconcile.ActNone, only(t, plan, "young").Action)
	assert.Contains(t, only(t, plan, "young").Reason, "younger")
}

// TestAWholeDumpIsReconciled goes from the rows of a dump to an ending.
func TestAWholeDumpIsReconciled(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.source.Tasks, s.source.AsOf = true, noon
	at := noon.Add(-100 * time.Minute)
	s.on(
		reconcile.Task(store.TaskRow{ID: "t1", Status: "processing", SandboxID: "a", CreatedAt: at, UpdatedAt: at}),
		reconcile.Task(store.TaskRow{ID: "t2", Status: "completed", SandboxID: "leak", CreatedAt: at, UpdatedAt: at}),
		reconcile.Task(store.TaskRow{ID: "t3", Status: "pending", CreatedAt: at, UpdatedAt: at}),
	)
	s.box("a", old)
	s.box("leak", old)
	all := s.fix(t, s.proved(t))
	require.Len(t, all, 1)
	assert.Equal(t, sandbox.OutcomeVerified, all[0].Outcome)
	assert.Equal(t, "leak", s.prod.Calls(fake.OpTerminate)[0].ID)
}
