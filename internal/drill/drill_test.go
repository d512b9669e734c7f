package drill

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/providers/fake"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// on stages a drill on a fake: its sandboxes are no real processes, so the verdicts are
// wrong, and only the course of events is tested.
func on(p *fake.Provider) Options {
	return Options{
		Fleet: fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{}), Profile: "local", Binary: "sleep",
		By: "test", Now: time.Now, Say: func(string) {},
	}
}

func fleetQuery() providers.Query { return providers.Query{All: true} }

func leftOn(p *fake.Provider) int {
	n := 0
	for s, err := range p.List(context.Background(), fleetQuery()) {
		if err == nil && s.Labels[drillLabel] != "" {
			n++
		}
	}
	return n
}

func TestWrongVerdictsAreFoundAndNothingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		report, err := Run(t.Context(), on(p))
		assert.Equal(t, fault.KindFound, fault.KindOf(err), "%v", err)
		assert.Len(t, report.Cases, len(allScenes()))
		assert.Len(t, report.Steps, 5)
		assert.Empty(t, report.LeftBehind)
		assert.Zero(t, leftOn(p))
	})
}

func TestInterruptionCleansUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in the middle of the second step
		defer cancel()
		report, err := Run(ctx, on(p))
		require.Error(t, err)
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err), "%v", err)
		assert.Empty(t, report.LeftBehind)
		assert.Zero(t, leftOn(p))
	})
}

// An interruption is reported as such, whatever the step returns.
func TestInterruptionOfACountIsNoFailedCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		p.Break(fake.Fault{Op: fake.OpStats, Hang: true}, fake.Fault{Op: fake.OpList, Hang: true, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		report, err := Run(ctx, on(p))
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err), "%v", err)
		assert.Len(t, report.Steps, 1)
		assert.Zero(t, leftOn(p))
	})
}

// latecomer starts one more sandbox when the end of the first is requested, like a
// supervisor whose drill was killed during a start.
type latecomer struct {
	once  sync.Once
	start func()
}

func (l *latecomer) Note(sandbox.Event, sandbox.Ref) { l.once.Do(l.start) }

func TestCleanTakesWhatStartsMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		seed := fake.Seed{Sandbox: sandbox.Sandbox{Labels: map[string]string{drillLabel: "run"}}}
		p.Add(seed)
		f := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{Sink: &latecomer{start: func() { p.Add(seed) }}})
		r, err := Clean(t.Context(), f, "test")
		require.NoError(t, err)
		assert.Len(t, r.Cases, 2)
		assert.Empty(t, r.LeftBehind)
		assert.Zero(t, leftOn(p))
	})
}

func TestAFailedStartCleansUpTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		p.Break(fake.Fault{Op: fake.OpCreate, After: 2, Times: 1, Err: fault.New(fault.KindUnavailable, "no room")})
		_, err := Run(t.Context(), on(p))
		require.ErrorContains(t, err, "no room")
		assert.Zero(t, leftOn(p))
	})
}

func TestKeepLeavesEverythingAndCleanTakesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		o := on(p)
		o.Keep, o.Scenarios = true, []string{"busy", "healthy"}
		report, err := Run(t.Context(), o)
		assert.Equal(t, fault.KindFound, fault.KindOf(err), "%v", err)
		assert.True(t, report.Kept)
		assert.Equal(t, 2, leftOn(p))
		r, err := Clean(t.Context(), o.Fleet, "test")
		require.NoError(t, err)
		assert.Len(t, r.Cases, 2)
		assert.Empty(t, r.LeftBehind)
		assert.Zero(t, leftOn(p))
	})
}

func TestWhatDoesNotEndIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", EndFor: fake.Forever})
		o := on(p)
		o.Scenarios = []string{"silent"}
		report, err := Run(t.Context(), o)
		require.Error(t, err)
		assert.Len(t, report.LeftBehind, 1)
		assert.False(t, report.Cases[0].OK)
	})
}

func TestChoose(t *testing.T) {
	t.Parallel()
	all, err := chooseScenes(nil)
	require.NoError(t, err)
	assert.Len(t, all, 6)
	two, err := chooseScenes([]string{"leak", "busy"})
	require.NoError(t, err)
	assert.Equal(t, []string{"leak", "busy"}, []string{two[0].name, two[1].name})
	_, err = chooseScenes([]string{"leek"})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Contains(t, fault.HintOf(err), "leak")
}

func TestTheLeaksCauseFollowsTheEnforcement(t *testing.T) {
	t.Parallel()
	assert.Equal(t, sandbox.CauseOOM, leakCause(sandbox.EnforcementHybrid))
	assert.Equal(t, sandbox.CauseMemoryWatchdog, leakCause(sandbox.EnforcementWatch))
}

func TestOnlyTheOrphanHasNoTask(t *testing.T) {
	t.Parallel()
	for _, s := range allScenes() {
		spec := s.sandboxSpec("run", "/bin/sbx", false)
		assert.Equal(t, s.name == "orphan", spec.TaskID == "" && spec.AgentType == "", s.name)
		assert.Equal(t, "run", spec.Labels[drillLabel])
		assert.Equal(t, 5*time.Minute, spec.TTL, "whatever happens, it ends by itself")
		assert.Equal(t, time.Hour, s.sandboxSpec("run", "/bin/sbx", true).TTL, "kept ones, too")
	}
}

func TestTheHealthyNeedNoName(t *testing.T) {
	t.Parallel()
	orphan := []triage.Finding{{Cause: sandbox.CauseOrphan, Confidence: sandbox.Hint}}
	cause, _, _ := nameVerdict(triage.Verdict{Stuck: sandbox.False})
	assert.Equal(t, sandbox.CauseNone, cause, "what is in order has no cause")
	cause, _, _ = nameVerdict(triage.Verdict{Stuck: sandbox.False, Findings: orphan})
	assert.Equal(t, sandbox.CauseOrphan, cause, "and it may lack an owner")
	cause, _, _ = nameVerdict(triage.Verdict{Stuck: sandbox.True, Cause: sandbox.CauseBusyLoop, Confidence: sandbox.Probable, Findings: orphan})
	assert.Equal(t, sandbox.CauseBusyLoop, cause)
	cause, confidence, _ := nameVerdict(triage.Verdict{Stuck: sandbox.True, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown})
	assert.Equal(t, sandbox.CauseUnknown, cause)
	assert.Equal(t, sandbox.ConfidenceUnknown, confidence)
}

func TestProgramsAreKnownByName(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, done := Program([]string{"sbx", "ls"}, &out)
	assert.False(t, done)
	status, done := Program([]string{"sbx", ProgramArg, "nobody"}, &out)
	assert.True(t, done)
	assert.Equal(t, 2, status)
	for _, s := range allScenes() {
		assert.Contains(t, stagedPrograms(), s.program)
	}
}

func TestFirstError(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	require.ErrorIs(t, firstError([]fleet.ProviderStats{{}, {ItemsErr: boom}}), boom)
	require.ErrorContains(t, firstError(nil), "no provider answered")
}
