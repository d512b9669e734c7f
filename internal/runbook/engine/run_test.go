package engine_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/lock"
	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/runbooks"
)

// TestARunEndsWhatLoopsAndProvesIt: from the diagnosis to whom to call, and all of it is on record.
func TestARunEndsWhatLoopsAndProvesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"), calm("calm0001"))
		s := newSite(t, "", p)
		watch := &person{answer: typesWords}
		run := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)

		assert.Equal(t, "done true", stateOfStep(t, run, "count"))
		assert.Equal(t, "done false", stateOfStep(t, run, "leak"))
		assert.Equal(t, "done true", stateOfStep(t, run, "end-loop"))
		assert.Equal(t, "not_selected ", stateOfStep(t, run, "end-hang"))
		assert.Equal(t, "not_selected ", stateOfStep(t, run, "bulk"))
		assert.Equal(t, "done true", stateOfStep(t, run, "verify-ages"))
		assert.Equal(t, map[string]int{"loop0001": 1, "loop0002": 1}, ends(p))
		assert.Equal(t, sandbox.StateRunning, stateOf(t, p, "calm0001"))

		act := run.Step("end-loop").Act
		require.Len(t, act.Outcomes, 2)
		assert.Equal(t, sandbox.OutcomeVerified, act.Outcomes[0].Outcome)
		assert.Equal(t, "count", act.Gate)
		assert.Equal(t, "typed 2", act.Allowed)
		assert.True(t, strings.HasPrefix(act.RunID, "r-"), act.RunID)
		require.NotEmpty(t, watch.questions)
		assert.Len(t, watch.questions[0].Targets, 2, "the plan is shown before the gate")

		require.NotEmpty(t, run.Causes)
		assert.Equal(t, "infinite_loop", run.Causes[0].ID)
		assert.True(t, run.Causes[0].Selected)
		assert.Len(t, run.Causes[0].Refs, 2)
		i := len(run.Calls) - 1
		assert.Equal(t, "agents", run.Calls[i].To)
		assert.Equal(t, sandbox.True, run.Calls[i].Verdict, "it held when the cause was named")

		assert.Equal(t, fault.KindUnavailable, fault.KindOf(run.Err()), "no cleanup is on record: %v", run.Err())
		assert.Equal(t, "done unknown", stateOfStep(t, run, "verify-cleanup"))
		kept, err := engine.ReadRun(s.disk(), run.ID)
		require.NoError(t, err)
		assert.Equal(t, engine.RunFailed, kept.State)
		assert.Equal(t, run.Steps, kept.Steps)
		assert.Equal(t, run.Causes[0].Refs, kept.Causes[0].Refs)
		assert.Equal(t, run.Calls, kept.Calls)
		assert.Empty(t, kept.Broken)
	})
}

// TestAGateThatIsAnsweredNo skips the step, and the run goes on to its verification.
func TestAGateThatIsAnsweredNo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{answer: saysNo})
		assert.Equal(t, "skipped ", stateOfStep(t, run, "end-loop"))
		assert.Empty(t, ends(p))
		assert.Equal(t, "done false", stateOfStep(t, run, "verify-ages"))
		assert.Equal(t, engine.RunFailed, run.State)
	})
}

// TestAGateWithoutAnAnswer makes the run wait: exit 11, and another process goes on where it stopped.
func TestAGateWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		watch *person
		req   engine.Request
	}{
		"nobody is there":     {watch: &person{}},
		"yes without a limit": {watch: &person{}, req: engine.Request{Yes: true}},
		"over the limit":      {watch: &person{}, req: engine.Request{Yes: true, MaxDelete: 1}},
		"the input ends":      {watch: &person{answer: endsTheInput}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"))
			s := newSite(t, "", p)
			tc.req.Book = shipped(t, "sandbox-stuck")
			first := s.run(t, tc.req, tc.watch)
			assert.Equal(t, engine.RunWaiting, first.State)
			assert.Equal(t, fault.KindRefused, fault.KindOf(first.Err()))
			assert.Contains(t, fault.HintOf(first.Err()), "--resume "+first.ID)
			if tc.req.Yes {
				assert.Equal(t, "go on with `sbx runbook run --resume "+first.ID+" --yes --max-delete 2`", fault.HintOf(first.Err()))
			}
			assert.Equal(t, "pending ", stateOfStep(t, first, "end-loop"))
			assert.Empty(t, ends(p))

			again := s.run(t, engine.Request{Resume: first.ID, Yes: true, MaxDelete: 2}, &person{})
			assert.Equal(t, "done true", stateOfStep(t, again, "end-loop"))
			assert.Equal(t, map[string]int{"loop0001": 1, "loop0002": 1}, ends(p))
			assert.Equal(t, first.Step("resources"), again.Step("resources"), "what is over is not repeated")
			assert.Len(t, again.Resumed, 1)
			_, err := engine.Start(t.Context(), s.env(t), engine.Request{Resume: first.ID}, &person{})
			assert.Equal(t, fault.KindRefused, fault.KindOf(err), "it has ended")
		})
	}
}

// TestUnknownSelectsNothing: of what no source shows, no branch is done and no check passes.
func TestUnknownSelectsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{PartialLogs: true}, alive("blind001"))
		run := newSite(t, "", p.Bare()).run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Yes: true, MaxDelete: 9}, &person{})
		for _, step := range run.Steps {
			if strings.HasPrefix(step.Section, engine.SectionCause) {
				assert.Equal(t, engine.NotSelected, step.State, step.ID)
			}
		}
		assert.Empty(t, ends(p))
		assert.Equal(t, "done unknown", stateOfStep(t, run, "verify-ages"))
	})
}

// TestADryRunChangesNothing: it diagnoses, plans the first act, and marks what depends on it.
func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		s := newSite(t, "", p)
		watch := &person{answer: typesWords}
		run := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), DryRun: true}, watch)
		require.NoError(t, run.Err())
		assert.Equal(t, "done true", stateOfStep(t, run, "resources"))
		plan := run.Step("end-loop")
		assert.Equal(t, engine.Pending, plan.State)
		require.NotNil(t, plan.Act)
		assert.Len(t, plan.Act.Targets, 1)
		for _, id := range []string{"limit-loop", "verify-active"} {
			assert.Equal(t, "end-loop", run.Step(id).DependsOn, id)
			assert.Equal(t, engine.Pending, run.Step(id).State, id)
		}
		assert.Empty(t, watch.questions)
		assert.Empty(t, ends(p))
		assert.NoDirExists(t, string(s.disk()))
		assert.NoDirExists(t, filepath.Join(s.dir, "runs"))
	})
}

// cutAfter leaves a record as a process does that was killed right after its first line of a kind.
func cutAfter(t *testing.T, disk journal.Dir, run, kind string) {
	t.Helper()
	path := filepath.Join(string(disk), run+".jsonl")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	i := bytes.Index(text, []byte(`"entry":"`+kind+`"`))
	require.Positive(t, i, "no entry %s", kind)
	end := i + bytes.IndexByte(text[i:], '\n') + 1
	require.NoError(t, os.WriteFile(path, text[:end], 0o600))
}

// TestAnActWithoutARecordedOutcome is not repeated: its targets are read again, and what is still there
// is asked about again.
func TestAnActWithoutARecordedOutcome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"))
		p.Break(fake.Fault{Op: fake.OpTerminate, ID: "loop0002", Err: fault.New(fault.KindUnavailable, "503")})
		s := newSite(t, "", p)
		first := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{answer: typesWords})
		assert.Equal(t, engine.Failed, first.Step("end-loop").State)
		cutAfter(t, s.disk(), first.ID, "intent")
		cut, err := engine.ReadRun(s.disk(), first.ID)
		require.NoError(t, err)
		assert.Equal(t, engine.RunInterrupted, cut.State)
		assert.True(t, cut.Step("end-loop").Act.IsOpen())
		before := ends(p)

		p.Mend()
		watch := &person{answer: typesWords}
		again := s.run(t, engine.Request{Resume: first.ID}, watch)
		act := again.Step("end-loop").Act
		outcomes := map[string]sandbox.Outcome{}
		for _, o := range act.Outcomes {
			outcomes[o.Ref] = o.Outcome
		}
		assert.Equal(t, map[string]sandbox.Outcome{"prod/loop0001": sandbox.OutcomeAlreadyGone, "prod/loop0002": sandbox.OutcomeVerified}, outcomes)
		assert.Equal(t, before["loop0001"], ends(p)["loop0001"], "what is gone is not asked again")
		assert.Contains(t, watch.questions[0].Objection, "it was begun before")
		assert.Equal(t, "1", watch.questions[0].Word)
		assert.Equal(t, "done true", stateOfStep(t, again, "end-loop"))
	})
}

// TestAnActThatHadDoneAllBeforeTheCut needs no second one.
func TestAnActThatHadDoneAllBeforeTheCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		s := newSite(t, "", p)
		first := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{answer: typesWords})
		cutAfter(t, s.disk(), first.ID, "intent")
		again := s.run(t, engine.Request{Resume: first.ID}, &person{})
		assert.Equal(t, "done true", stateOfStep(t, again, "end-loop"))
		assert.Equal(t, sandbox.OutcomeAlreadyGone, again.Step("end-loop").Act.Outcomes[0].Outcome)
		assert.Equal(t, map[string]int{"loop0001": 1}, ends(p))
	})
}

// TestARunThatIsCutAnywhereGoesOn: after each line of its record another process brings it to the same
// end, and nothing is asked twice to end.
func TestARunThatIsCutAnywhereGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		s := newSite(t, "", p)
		first := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Yes: true, MaxDelete: 1}, &person{})
		path := filepath.Join(string(s.disk()), first.ID+".jsonl")
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := bytes.SplitAfter(whole, []byte("\n"))
		for n := 2; n < len(lines)-2; n++ { // with begin and steps
			require.NoError(t, os.WriteFile(path, append(bytes.Join(lines[:n], nil), `{"seq`...), 0o600))
			again := s.run(t, engine.Request{Resume: first.ID, Yes: true, MaxDelete: 1}, &person{})
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(again.Err()), "cut after line %d: %v", n, again.Err())
			assert.Equal(t, 1, ends(p)["loop0001"], "cut after line %d", n)
			kept, err := engine.ReadRun(s.disk(), first.ID)
			require.NoError(t, err)
			assert.Equal(t, engine.RunFailed, kept.State)
			assert.Zero(t, kept.Count(engine.Running))
			assert.Zero(t, kept.Count(engine.Pending))
		}
	})
}

func TestRecordsThatCannotGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		s := newSite(t, "", p)
		first := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{})
		path := filepath.Join(string(s.disk()), first.ID+".jsonl")
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		resume := func() error {
			_, err := engine.Start(t.Context(), s.env(t), engine.Request{Resume: first.ID, Yes: true, MaxDelete: 1}, &person{})
			return err
		}
		require.NoError(t, os.WriteFile(path, bytes.Replace(whole, []byte("waits for an answer"), []byte("needs no answer at all"), 1), 0o600))
		err = resume()
		assert.Equal(t, fault.KindRefused, fault.KindOf(err))
		require.ErrorContains(t, err, "changed or damaged")
		runs, errs := engine.Runs(s.disk(), 0)
		assert.Len(t, runs, 1)
		assert.Len(t, errs, 1)

		require.NoError(t, os.WriteFile(path, whole, 0o600))
		release, err := s.env(t).LockRunbookRun(t.Context(), lock.Holder{Run: first.ID, Who: "ann", Host: "host-1", PID: 1, Since: time.Now()})
		require.NoError(t, err)
		err = resume()
		assert.Equal(t, fault.KindLocked, fault.KindOf(err), "a second operator")
		require.ErrorContains(t, err, "ann")
		require.NoError(t, release())

		w, err := journal.Create(s.disk(), "b-99991231T000000000-zzzzzz", time.Now)
		require.NoError(t, err)
		require.NoError(t, w.Append("begin", map[string]any{"version": engine.Version + 1}))
		require.NoError(t, w.Close())
		_, err = engine.ReadRun(s.disk(), "b-99991231T000000000-zzzzzz")
		assert.Equal(t, fault.KindRefused, fault.KindOf(err))
		require.ErrorContains(t, err, "newer sbx")
		assert.Empty(t, ends(p))
		_, err = engine.FindRun(s.disk(), "b-nothing")
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	})
}

// TestAnInterruptionAtTheGate: the run is on record as interrupted, and goes on.
func TestAnInterruptionAtTheGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		s := newSite(t, "", p)
		ctx, interrupt := context.WithCancelCause(t.Context())
		watch := &person{answer: func(ops.Question) (string, bool) {
			interrupt(fault.New(fault.KindCanceled, "interrupted"))
			return "", false
		}}
		run, err := engine.Start(ctx, s.env(t), engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)
		require.NoError(t, err)
		assert.Equal(t, 130, fault.ExitCode(run.Err()), "%v", run.Err())
		kept, err := engine.ReadRun(s.disk(), run.ID)
		require.NoError(t, err)
		assert.Equal(t, engine.RunInterrupted, kept.State)
		assert.Equal(t, engine.Running, kept.Step("end-loop").State)
		next := &person{answer: typesWords}
		again := s.run(t, engine.Request{Resume: run.ID}, next)
		assert.Equal(t, "done true", stateOfStep(t, again, "end-loop"))
		assert.Empty(t, next.questions[0].Objection, "nothing had begun")
	})
}

// TestAnInterruptionInTheAct: what was not done is asked about again, what was done is not.
func TestAnInterruptionInTheAct(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{EndFor: 3 * time.Second}, looping("loop0001"), looping("loop0002"))
		s := newSite(t, "", p)
		ctx, interrupt := context.WithCancelCause(t.Context())
		watch := &person{answer: typesWords, onItem: func(item any) {
			if _, acts := item.(ops.RunStarted); acts {
				interrupt(fault.New(fault.KindCanceled, "interrupted"))
			}
		}}
		run, err := engine.Start(ctx, s.env(t), engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)
		require.NoError(t, err)
		assert.Equal(t, 130, fault.ExitCode(run.Err()), "%v", run.Err())
		assert.Equal(t, engine.RunInterrupted, run.State)
		assert.Equal(t, engine.Running, run.Step("end-loop").State)
		before := ends(p)
		again := s.run(t, engine.Request{Resume: run.ID}, &person{answer: typesWords})
		assert.Equal(t, "done true", stateOfStep(t, again, "end-loop"), again.Step("end-loop").Reason)
		for id, n := range before {
			if n > 0 && stateOf(t, p, id).Ended() {
				assert.LessOrEqual(t, ends(p)[id], n+1)
			}
		}
		for _, id := range []string{"loop0001", "loop0002"} {
			assert.True(t, stateOf(t, p, id).Ended(), id)
		}
	})
}

// TestEveryShippedRunbookRuns to its end, as a dry run and in earnest, with something to find and
// without.
func TestEveryShippedRunbookRuns(t *testing.T) {
	t.Parallel()
	catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(t.Context())
	require.NoError(t, err)
	for _, book := range catalog.Books {
		for name, seeds := range map[string][]fake.Seed{"empty": nil, "stuck": {looping("loop0001"), calm("calm0001")}} {
			for _, dry := range []bool{true, false} {
				bubble.Run(t, string(book.Metadata.ID)+" "+name, func(t *testing.T) {
					p := prod(fake.Options{}, seeds...)
					run := newSite(t, "", p).run(t, engine.Request{Book: book, DryRun: dry, Yes: !dry, MaxDelete: 5}, &person{})
					if dry {
						require.NoError(t, run.Err())
						assert.Empty(t, ends(p))
						return
					}
					assert.Contains(t, []engine.RunState{engine.RunDone, engine.RunFailed}, run.State, "%v", run.Err())
					assert.Zero(t, run.Count(engine.Pending)+run.Count(engine.Running))
					assert.Zero(t, ends(p)["calm0001"])
				})
			}
		}
	}
}

// TestADrillIsNotResumed: what it had staged is gone, and its steps would be done to real sandboxes.
func TestADrillIsNotResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		s := newSite(t, "", p)
		first := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Staged: true}, &person{})
		require.Equal(t, engine.RunWaiting, first.State)
		_, err := engine.Start(t.Context(), s.env(t), engine.Request{Resume: first.ID, Yes: true, MaxDelete: 1}, &person{})
		require.ErrorContains(t, err, "was a drill")
		assert.Equal(t, fault.KindRefused, fault.KindOf(err))
		assert.Empty(t, ends(p))
	})
}
