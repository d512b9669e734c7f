package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// cell is one cell of the matrix: the state of sandbox x on both sides, observed twice, and
// the result.
type cell struct {
	stage   func(*scene)
	class   reconcile.Class
	cause   reconcile.Cause
	action  reconcile.Action
	verdict sandbox.Verdict
	reason  string
}

const (
	is, isNot, mayBe = sandbox.True, sandbox.False, sandbox.Unknown
	old              = 2 * time.Hour
)

func matrix() map[string]cell {
	there := func(live sandbox.Verdict, age time.Duration, edits ...func(*sandbox.Sandbox)) func(*scene) {
		return func(s *scene) { s.on(recorded("x", live)).box("x", age, edits...) }
	}
	missing := func(edit func(*reconcile.Record)) func(*scene) {
		return func(s *scene) {
			r := recorded("x", is)
			if edit != nil {
				edit(&r)
			}
			s.on(r)
		}
	}
	alone := func(age time.Duration, edits ...func(*sandbox.Sandbox)) func(*scene) {
		return func(s *scene) { s.box("x", age, edits...) }
	}
	busy := func(b *sandbox.Sandbox) { b.Activity = is }
	return map[string]cell{
		"both live":                 {there(is, old), reconcile.Both, reconcile.CauseAgrees, reconcile.ActNone, isNot, ""},
		"lives, paused":             {there(is, old, state(sandbox.StatePaused)), reconcile.Both, reconcile.CauseAgrees, reconcile.ActNone, isNot, ""},
		"lives, on its way down":    {there(is, old, state(sandbox.StateTerminating)), reconcile.Differs, reconcile.CauseEnding, reconcile.ActNone, mayBe, "terminating"},
		"lives, state unknown":      {there(is, old, state(sandbox.StateUnknown)), reconcile.Differs, reconcile.CauseUnclear, reconcile.ActReport, mayBe, "does not know"},
		"lives, stopped":            {there(is, old, state(sandbox.StateStopped)), reconcile.Differs, reconcile.CauseStopped, reconcile.ActReport, is, "could continue"},
		"lives, ended":              {there(is, old, state(sandbox.StateFailed)), reconcile.Differs, reconcile.CauseStale, reconcile.ActMark, is, "it is failed"},
		"lives, gone":               {missing(nil), reconcile.RecordOnly, reconcile.CauseGhost, reconcile.ActMark, is, "does not know its id"},
		"lives, gone, young record": {missing(func(r *reconcile.Record) { r.CreatedAt = noon }), reconcile.RecordOnly, reconcile.CauseUnclear, reconcile.ActNone, mayBe, "may still be starting"},
		"lives, gone, not ours":     {func(s *scene) { missing(nil)(s); s.source.Mark = nil }, reconcile.RecordOnly, reconcile.CauseGhost, reconcile.ActReport, is, "may not write"},
		"task at work, gone":        {func(s *scene) { missing(nil)(s); s.source.Tasks = true }, reconcile.RecordOnly, reconcile.CauseZombie, reconcile.ActReport, is, "in its application"},
		"task at work, stopped":     {func(s *scene) { there(is, old, state(sandbox.StateStopped))(s); s.source.Tasks = true }, reconcile.Differs, reconcile.CauseZombie, reconcile.ActReport, is, "it is stopped"},
		"lives, ended before it":    {there(is, 9*time.Hour, state(sandbox.StateTerminated), func(b *sandbox.Sandbox) { b.EndedAt = noon.Add(-8 * time.Hour) }), reconcile.Differs, reconcile.CauseReused, reconcile.ActReport, mayBe, "not the same"},
		"ended, lives":              {there(isNot, old), reconcile.Differs, reconcile.CauseLeak, reconcile.ActTerminate, is, "recorded as completed"},
		"ended, works":              {there(isNot, old, busy), reconcile.Differs, reconcile.CauseLeak, reconcile.ActReport, mayBe, "reports it as active"},
		"ended, looks fail": {func(s *scene) {
			there(isNot, old)(s)
			for _, op := range []fake.Op{fake.OpUsage, fake.OpLogs, fake.OpProcesses, fake.OpProbe} {
				s.prod.Break(fake.Fault{Op: op, Err: fault.New(fault.KindUnavailable, "503")})
			}
		}, reconcile.Differs, reconcile.CauseLeak, reconcile.ActReport, mayBe, "could not check"},
		"ended, worked 8 s ago":       {there(isNot, old, func(b *sandbox.Sandbox) { b.LastActivityAt = noon.Add(5*time.Minute - 8*time.Second) }), reconcile.Differs, reconcile.CauseLeak, reconcile.ActReport, mayBe, " 8s)"},
		"ended, lives, protected":     {there(isNot, old, label(sandbox.LabelKeep, "true")), reconcile.Differs, reconcile.CauseLeak, reconcile.ActNone, mayBe, "protected"},
		"ended, lives, not owned":     {there(isNot, old, label("team", "others")), reconcile.Differs, reconcile.CauseLeak, reconcile.ActReport, mayBe, "not owned"},
		"ended, lives, young":         {there(isNot, time.Minute), reconcile.Differs, reconcile.CauseLeak, reconcile.ActNone, mayBe, "younger than 10m"},
		"ended, lives, ageless":       {there(isNot, old, ageless), reconcile.Differs, reconcile.CauseLeak, reconcile.ActReport, mayBe, "age is unknown"},
		"ended, begun after":          {func(s *scene) { s.on(before("x", noon.Add(-90*time.Minute))).box("x", time.Hour) }, reconcile.Differs, reconcile.CauseReused, reconcile.ActReport, mayBe, "started after the record's last change"},
		"ended, on its way down":      {there(isNot, old, state(sandbox.StateTerminating)), reconcile.Both, reconcile.CauseEnding, reconcile.ActNone, mayBe, ""},
		"ended, kept without limit":   {kept(0), reconcile.Both, reconcile.CauseKept, reconcile.ActNone, isNot, "without a limit"},
		"ended, kept within limit":    {kept(5 * time.Hour), reconcile.Both, reconcile.CauseKept, reconcile.ActNone, isNot, "until 2026-11-20T15:00:00Z"},
		"ended, kept beyond limit":    {kept(time.Hour), reconcile.Differs, reconcile.CauseOverdue, reconcile.ActTerminate, is, "longer than the 1h"},
		"ended, kept beyond, works":   {func(s *scene) { kept(time.Hour)(s); s.prod.Change("x", busy) }, reconcile.Differs, reconcile.CauseOverdue, reconcile.ActReport, mayBe, "reports it as active"},
		"unclear, lives":              {there(mayBe, old), reconcile.Both, reconcile.CauseUnclear, reconcile.ActNone, mayBe, "does not tell"},
		"unclear, ended":              {there(mayBe, old, state(sandbox.StateFailed)), reconcile.Differs, reconcile.CauseUnclear, reconcile.ActReport, mayBe, "does not run"},
		"unclear, gone":               {func(s *scene) { s.on(recorded("x", mayBe)) }, reconcile.RecordOnly, reconcile.CauseUnclear, reconcile.ActReport, mayBe, "does not run"},
		"orphan":                      {alone(old), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActTerminate, is, "not recorded"},
		"orphan, paused":              {alone(old, state(sandbox.StatePaused)), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActTerminate, is, "it is paused"},
		"orphan, works":               {alone(old, busy), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "reports it as active"},
		"orphan, worked lately":       {alone(old, func(b *sandbox.Sandbox) { b.LastActivityAt = noon.Add(5*time.Minute - 30*time.Second) }), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, " 30s)"},
		"orphan, active tomorrow":     {alone(old, func(b *sandbox.Sandbox) { b.LastActivityAt = noon.Add(24 * time.Hour) }), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "in the future"},
		"orphan, protected":           {alone(old, label(sandbox.LabelKeep, "true")), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActNone, mayBe, "protected"},
		"orphan, not owned":           {alone(old, label("team", "others")), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "not owned"},
		"orphan, young":               {alone(5 * time.Minute), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActNone, mayBe, "younger than 10m"},
		"orphan, started anew":        {alone(old, func(b *sandbox.Sandbox) { b.StartedAt = noon }), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActNone, mayBe, "younger than 10m"},
		"orphan, ageless":             {alone(old, ageless), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "age is unknown"},
		"orphan, of tomorrow":         {alone(-24 * time.Hour), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "age is unknown"},
		"orphan, state unknown":       {alone(old, state(sandbox.StateUnknown)), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "state is unknown"},
		"orphan, stopped":             {alone(old, state(sandbox.StateStopped)), reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "only --delete"},
		"orphan, stopped, delete":     {func(s *scene) { alone(old, state(sandbox.StateStopped))(s); s.rules.Delete = true }, reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActTerminate, is, ""},
		"orphan, on its way down":     {alone(old, state(sandbox.StateTerminating)), reconcile.RealOnly, reconcile.CauseEnding, reconcile.ActNone, mayBe, ""},
		"orphan, adopted":             {func(s *scene) { alone(old)(s); s.rules.Adopt = true }, reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActAdopt, is, ""},
		"orphan, nowhere to adopt":    {func(s *scene) { alone(old)(s); s.rules.Adopt, s.source.Adopt = true, nil }, reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActReport, mayBe, "cannot add records"},
		"orphan, newer than the dump": {func(s *scene) { alone(old)(s); s.source.AsOf = noon.Add(-old) }, reconcile.RealOnly, reconcile.CauseOrphan, reconcile.ActNone, mayBe, "newer than the records"},
		"two records":                 {func(s *scene) { s.on(recorded("x", isNot), recorded("x", is)).box("x", old) }, reconcile.Differs, reconcile.CauseDuplicate, reconcile.ActReport, is, "2 records"},
		"two records, ended":          {func(s *scene) { s.on(recorded("x", isNot), recorded("x", isNot)).box("x", old) }, reconcile.Differs, reconcile.CauseDuplicate, reconcile.ActReport, is, "2 records"},
		"two records, gone":           {func(s *scene) { s.on(recorded("x", is), recorded("x", is)) }, reconcile.RecordOnly, reconcile.CauseDuplicate, reconcile.ActReport, is, "2 records"},
		"one by id, one by name":      {func(s *scene) { s.on(recorded("x", isNot), recorded("worker", isNot)).box("x", old, worker) }, reconcile.Differs, reconcile.CauseDuplicate, reconcile.ActReport, is, "2 records"},
		"ended by name, timeless":     {func(s *scene) { s.on(timeless("worker")).box("x", old, worker) }, reconcile.Differs, reconcile.CauseReused, reconcile.ActReport, mayBe, "may be of another"},
		"the read by id fails": {func(s *scene) {
			alone(old)(s)
			s.prod.Break(fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindUnavailable, "503")})
		}, reconcile.RealOnly, reconcile.CauseUnproved, reconcile.ActReport, mayBe, "503"},
		"gone, the read fails": {func(s *scene) {
			missing(nil)(s)
			s.prod.Break(fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindAuth, "401")})
		}, reconcile.RecordOnly, reconcile.CauseUnproved, reconcile.ActReport, mayBe, "401"},
	}
}

func ageless(b *sandbox.Sandbox) { b.CreatedAt, b.StartedAt = time.Time{}, time.Time{} }

func worker(b *sandbox.Sandbox) { b.Name = "worker" }

// before is an ended record whose latest time is given.
func before(id string, at time.Time) reconcile.Record {
	r := recorded(id, isNot)
	r.CreatedAt, r.UpdatedAt, r.EndedAt = at.Add(-time.Hour), at, at
	return r
}

func timeless(id string) reconcile.Record {
	r := recorded(id, isNot)
	r.CreatedAt, r.UpdatedAt = time.Time{}, time.Time{}
	return r
}

// kept is a sandbox of two hours whose ended task keeps it alive.
func kept(limit time.Duration) func(*scene) {
	return func(s *scene) {
		r := recorded("x", isNot)
		r.KeepAlive, r.KeepFor = true, limit
		s.on(r).box("x", old)
	}
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	for name, c := range matrix() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.on(recorded("neighbour", is)).box("neighbour", old)
			c.stage(s)
			row := only(t, s.proved(t), "x")
			assert.Equal(t, c.class, row.Class, "class: %s", row.Reason)
			assert.Equal(t, c.cause, row.Cause, "cause: %s", row.Reason)
			assert.Equal(t, c.action, row.Action, "action: %s", row.Reason)
			assert.Equal(t, c.verdict, row.Verdict, "verdict: %s", row.Reason)
			assert.Contains(t, row.Reason, c.reason)
			assert.NotEmpty(t, row.Record)
			assert.NotEmpty(t, row.Reality)
			assert.Equal(t, 0, s.asked(), "a plan ends nothing")
			assert.Empty(t, s.marked, "a plan marks nothing")
		})
	}
}

func TestWhatIsOverOnBothSidesHasNoRow(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]func(*scene){
		"ended, gone":          func(s *scene) { s.on(recorded("x", isNot)) },
		"ended twice, gone":    func(s *scene) { s.on(recorded("x", isNot), recorded("x", isNot)) },
		"ended, ended":         func(s *scene) { s.on(recorded("x", isNot)).box("x", old, state(sandbox.StateTerminated)) },
		"ended, stopped":       func(s *scene) { s.on(recorded("x", isNot)).box("x", old, state(sandbox.StateStopped)) },
		"not on record, ended": func(s *scene) { s.box("x", old, state(sandbox.StateFailed)) },
		"ended, listed, denied by its id": func(s *scene) {
			s.on(recorded("x", isNot)).box("x", old)
			s.prod.Break(fake.Fault{Op: fake.OpGet, ID: "x", Err: fault.New(fault.KindNotFound, "404")})
		},
		"listed, denied by its id": func(s *scene) {
			s.box("x", old)
			s.prod.Break(fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindNotFound, "404")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.on(recorded("neighbour", is)).box("neighbour", old)
			stage(s)
			plan := s.proved(t)
			assert.Len(t, plan.Rows, 1)
			assert.Equal(t, 1, plan.Settled)
			assert.Equal(t, 0, plan.CountNeedingAction())
		})
	}
}
