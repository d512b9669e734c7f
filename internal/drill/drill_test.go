package drill

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
	"sbx/internal/triage"
	"sbx/runbooks"
)

// on stages a drill on a fake: its sandboxes are no real processes, so the verdicts are
// wrong, and only the course of events is tested.
func on(t *testing.T, p *fake.Provider) Options {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("providers:\n  local: {type: fake}\nlaunch: local\n"), 0o600))
	proc := process.Process{Args: []string{"sbx"}, Home: dir, Workdir: dir, PID: 100, Host: "host-1", Now: time.Now}
	types := []providers.Type{{Name: "fake", Facts: providers.Facts{HostProcesses: true}}}
	memory := store.Memory(time.Now)
	env := opstest.NewEnv(opstest.Parts{
		Process: proc, Types: types,
		Config: func() (*config.Config, error) {
			return config.Load(t.Context(), config.Input{Process: proc, Types: types})
		},
		Members: func() []fleet.Member { return []fleet.Member{{Provider: p, Metadata: sandbox.DefaultMetadata()}} },
		Store:   func() store.Store { return memory },
		Runs:    filepath.Join(dir, "runs"), Endings: filepath.Join(dir, "endings"),
	})
	return Options{Env: env, Book: shipped(t, DefaultRunbook), Binary: "sleep", By: "test", Watch: quiet{}, Say: func(string) {}}
}

// quiet reports to nobody.
type quiet struct{}

func (quiet) Note(string)               {}
func (quiet) Warn(string)               {}
func (quiet) Redact(text string) string { return text }

func shipped(t *testing.T, id string) *runbook.Runbook {
	t.Helper()
	shelf, err := runbook.Library{Shipped: runbooks.Files}.Load(t.Context())
	require.NoError(t, err)
	book, err := shelf.Find(id)
	require.NoError(t, err)
	return book
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
		report, err := Run(t.Context(), on(t, p))
		assert.Equal(t, fault.KindFound, fault.KindOf(err), "%v", err)
		assert.Len(t, report.Cases, len(stuckScenes()))
		require.NotNil(t, report.Runbook)
		assert.True(t, report.Runbook.Step("cleanup").State.IsOver())
		for id, why := range map[string]string{"verify-cleanup": "a drill has no job that cleans up", "verify-timeouts": "a drill launches no tasks"} {
			step := report.Runbook.Step(id)
			assert.Equal(t, engine.NotSelected, step.State, id)
			assert.Equal(t, why, step.Reason, id)
		}
		assert.True(t, report.Runbook.Step("verify-active").State.IsOver())
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
		report, err := Run(ctx, on(t, p))
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
		o := on(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Say = func(text string) {
			if strings.HasPrefix(text, "running the runbook") {
				p.Break(fake.Fault{Op: fake.OpStats, Hang: true}, fake.Fault{Op: fake.OpList, Hang: true, Times: 1})
				time.AfterFunc(time.Second, cancel)
			}
		}
		report, err := Run(ctx, o)
		assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
		require.NotNil(t, report.Runbook)
		assert.Equal(t, engine.RunInterrupted, report.Runbook.State)
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
		r, err := Clean(t.Context(), f, "test", nil)
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
		_, err := Run(t.Context(), on(t, p))
		require.ErrorContains(t, err, "no room")
		assert.Zero(t, leftOn(p))
	})
}

func TestKeepLeavesEverythingAndCleanTakesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		o := on(t, p)
		o.Keep, o.Scenarios = true, []string{"busy", "healthy"}
		report, err := Run(t.Context(), o)
		assert.Equal(t, fault.KindFound, fault.KindOf(err), "%v", err)
		assert.True(t, report.Kept)
		assert.Equal(t, 2, leftOn(p))
		f, _, err := o.Env.HostFleet(t.Context())
		require.NoError(t, err)
		r, err := Clean(t.Context(), f, "test", nil)
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
		o := on(t, p)
		o.Scenarios = []string{"silent"}
		report, err := Run(t.Context(), o)
		require.Error(t, err)
		assert.Len(t, report.LeftBehind, 1)
		assert.False(t, report.Cases[0].OK)
	})
}

func TestChoose(t *testing.T) {
	t.Parallel()
	stuck, err := findStaging(DefaultRunbook)
	require.NoError(t, err)
	all, err := stuck.choose(nil)
	require.NoError(t, err)
	assert.Len(t, all.scenes, 6)
	two, err := stuck.choose([]string{"leak", "busy"})
	require.NoError(t, err)
	assert.Equal(t, []string{"leak", "busy"}, []string{two.scenes[0].name, two.scenes[1].name})
	_, err = stuck.choose([]string{"leek"})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Contains(t, fault.HintOf(err), "leak")
	err = CanStage("state-drift")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Contains(t, fault.HintOf(err), "sigkill-137")
}

// Each staging belongs to a runbook that is shipped, and its run is about one of its scenes.
func TestWhatIsStagedIsShipped(t *testing.T) {
	t.Parallel()
	for _, st := range allStagings() {
		assert.NotNil(t, shipped(t, st.runbook))
		if st.about != "" {
			_, err := st.choose([]string{st.about})
			require.NoError(t, err)
		}
	}
}

// A sandbox that is not staged, and would be stuck by the limits of a drill, is neither shown nor ended.
func TestADrillSeesAndEndsOnlyWhatItHasStaged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		old := time.Now().Add(-time.Hour)
		p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "somebodys", State: sandbox.StateRunning, CreatedAt: old, StartedAt: old, Labels: map[string]string{drillLabel: "another"}}})
		report, _ := Run(t.Context(), on(t, p))
		require.NotNil(t, report.Runbook)
		got, err := p.Get(t.Context(), "somebodys")
		require.NoError(t, err)
		assert.Equal(t, sandbox.StateRunning, got.State)
		for _, c := range p.Calls() {
			assert.False(t, c.Op == fake.OpTerminate && c.ID == "somebodys")
		}
		for _, s := range report.Runbook.Steps {
			assert.NotContains(t, strings.Join(s.Evidence, " "), "somebodys", s.ID)
		}
		assert.NotEmpty(t, report.Runbook.Step("count").Answers)
		assert.Contains(t, report.Runbook.Step("count").Answers[0].Answer, "6", "the counters are of the staged ones")
	})
}

func TestTheLeaksCauseFollowsTheEnforcement(t *testing.T) {
	t.Parallel()
	assert.Equal(t, sandbox.CauseOOM, leakCause(sandbox.EnforcementHybrid))
	assert.Equal(t, sandbox.CauseMemoryWatchdog, leakCause(sandbox.EnforcementWatch))
}

func TestOnlyTheOrphanHasNoTask(t *testing.T) {
	t.Parallel()
	for _, s := range stuckScenes() {
		spec := s.sandboxSpec("run", "/bin/sbx", maxLifetime, false)
		assert.Equal(t, s.name == "orphan", spec.TaskID == "" && spec.AgentType == "", s.name)
		assert.Equal(t, "run", spec.Labels[drillLabel])
		assert.Equal(t, maxLifetime, spec.TTL, "whatever happens, it ends by itself")
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
	for _, st := range allStagings() {
		for _, s := range st.scenes {
			assert.Contains(t, stagedPrograms(), s.program)
		}
	}
}
