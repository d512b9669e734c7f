package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/runbook/engine"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

const checks = `  verification:
    - id: ages
      check: verify.none_over_age
`

// TestStepsOfPeople: what a person does, is asked and confirms, at a terminal and without one.
func TestStepsOfPeople(t *testing.T) {
	t.Parallel()
	spec := `  steps:
    - id: count
      collect: [count]
      eta: 1m
  procedures:
    - id: talk
      title: Talk
      steps:
        - id: look
          title: Look at the page
          manual: Look after {{ thresholds.stuck_age }}.
          ask: What does it say?
          eta: 1m
        - id: sure
          title: Be sure
          confirm: Go on?
          eta: 1m
        - id: last
          title: Say so
          manual: Say so.
          eta: 1m
` + checks
	answers := func(confirm string) func(q ops.Question) (string, bool) {
		return func(q ops.Question) (string, bool) {
			switch {
			case q.Word == "yes":
				return confirm, true
			case q.Prompt == "What does it say? ":
				return "nothing", true
			}
			return "", true
		}
	}
	for name, tc := range map[string]struct {
		watch *person
		yes   bool
		want  map[string]string
		state engine.RunState
	}{
		"yes":                {watch: &person{answer: answers("yes")}, want: map[string]string{"look": "done ", "sure": "done true", "last": "done "}, state: engine.RunDone},
		"no leaves the rest": {watch: &person{answer: answers("no")}, want: map[string]string{"look": "done ", "sure": "done false", "last": "skipped "}, state: engine.RunDone},
		"by flag":            {watch: &person{}, yes: true, want: map[string]string{"look": "skipped ", "sure": "done true", "last": "skipped "}, state: engine.RunDone},
		"nobody":             {watch: &person{}, want: map[string]string{"look": "skipped ", "sure": "pending ", "last": "pending "}, state: engine.RunWaiting},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newSite(t, "thresholds: {stuck_age: 7m}\n", prod(fake.Options{}, calm("calm0001")))
			run := s.run(t, engine.Request{Book: written(t, spec), Procedure: "talk", Yes: tc.yes}, tc.watch)
			for id, want := range tc.want {
				assert.Equal(t, want, stateOfStep(t, run, id), id)
			}
			assert.Equal(t, tc.state, run.State, "%v", run.Err())
			if name == "yes" {
				look := run.Step("look")
				assert.Equal(t, []string{"Look after 7m.", "it will be asked: What does it say?"}, look.Evidence, "the setting that is configured")
				require.Len(t, look.Answers, 1)
				assert.Equal(t, "nothing", look.Answers[0].Answer)
			}
		})
	}
}

// TestAWaitLooksAgain until the condition holds everywhere, and fails at its limit.
func TestAWaitLooksAgain(t *testing.T) {
	t.Parallel()
	spec := `  steps:
    - id: count
      collect: [count]
      eta: 30s
    - id: fewer
      title: Fewer run
      wait_until: stats.active == 0
      within: 10m
      every: 1m
      eta: 30s
` + checks
	for name, tc := range map[string]struct {
		after time.Duration
		want  string
		kind  fault.Kind
	}{
		"in time": {4 * time.Minute, "done true", fault.KindNone},
		"never":   {time.Hour, "failed false", fault.KindPartial},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := prod(fake.Options{}, calm("calm0001"))
			timer := time.AfterFunc(tc.after, func() { assert.NoError(t, p.Terminate(t.Context(), "calm0001", providers.TerminateOptions{})) })
			defer timer.Stop()
			began := time.Now()
			run := newSite(t, "", p).run(t, engine.Request{Book: written(t, spec)}, &person{})
			assert.Equal(t, tc.want, stateOfStep(t, run, "fewer"))
			assert.Equal(t, tc.kind, fault.KindOf(run.Err()), "%v", run.Err())
			assert.LessOrEqual(t, time.Since(began), 12*time.Minute)
			assert.GreaterOrEqual(t, run.Step("fewer").Took, min(tc.after, 10*time.Minute))
		})
	}
}

// TestACollectorThatFails leaves its facts unknown, and the run goes on.
func TestACollectorThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"))
		p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Yes: true, MaxDelete: 5}, &person{})
		assert.Equal(t, "done unknown", stateOfStep(t, run, "stuck"))
		assert.Contains(t, run.Step("stuck").Evidence[0], "503")
		assert.Equal(t, "not_selected ", stateOfStep(t, run, "end-loop"))
		assert.Empty(t, ends(p))
		assert.Error(t, run.Err())
	})
}

// TestAStepHasALimit: a source that hangs costs the step its own time, and no more.
func TestAStepHasALimit(t *testing.T) {
	t.Parallel()
	spec := `  steps:
    - id: look
      title: Look
      collect: [stuck]
      timeout: 3s
      eta: 1m
` + checks
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, calm("calm0001"))
		p.Break(fake.Fault{Op: fake.OpList, Hang: true}, fake.Fault{Op: fake.OpStats, Hang: true})
		run := newSite(t, "", p).run(t, engine.Request{Book: written(t, spec)}, &person{})
		look := run.Step("look")
		assert.Equal(t, engine.Failed, look.State)
		assert.Contains(t, look.Reason, "limit of 3s")
		assert.LessOrEqual(t, look.Took, 4*time.Second)
		assert.NotEqual(t, 124, fault.ExitCode(run.Err()), "that is the limit of the operator")
	})
}

// TestAnEndThatIsNotSeen is exit 8, as that of terminate.
func TestAnEndThatIsNotSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{EndFor: fake.Forever}, looping("loop0001"))
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Yes: true, MaxDelete: 5}, &person{})
		assert.Equal(t, "failed false", stateOfStep(t, run, "end-loop"))
		assert.Equal(t, 8, fault.ExitCode(run.Err()), "%v", run.Err())
		assert.Equal(t, sandbox.OutcomeStuck, run.Step("end-loop").Act.Outcomes[0].Outcome)
	})
}

// TestProductionIsNamed, by a flag or at the gate; the count alone does not do.
func TestProductionIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		req   engine.Request
		watch *person
		ended bool
	}{
		"by nobody":   {req: engine.Request{Yes: true, MaxDelete: 5}, watch: &person{}},
		"by a flag":   {req: engine.Request{Yes: true, MaxDelete: 5, Production: []string{"prod"}}, watch: &person{}, ended: true},
		"at the gate": {watch: &person{answer: typesWords}, ended: true},
		"the count only": {watch: &person{answer: func(q ops.Question) (string, bool) {
			return map[bool]string{true: q.Word, false: "no"}[q.Word == "1"], true
		}}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := prod(fake.Options{}, looping("loop0001"))
			tc.req.Book = shipped(t, "sandbox-stuck")
			newSite(t, "production: [prod]\n", p).run(t, tc.req, tc.watch)
			assert.Equal(t, tc.ended, ends(p)["loop0001"] == 1)
		})
	}
}

// TestWhatIsProtectedStays, and the plan says why.
func TestWhatIsProtectedStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := looping("kept0001")
		kept.Sandbox.Labels = map[string]string{sandbox.LabelKeep: "true"}
		p := prod(fake.Options{}, kept)
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Yes: true, MaxDelete: 5}, &person{})
		assert.Equal(t, "skipped ", stateOfStep(t, run, "end-loop"))
		assert.Contains(t, run.Step("end-loop").Reason, "prod/kept0001 stays")
		assert.Empty(t, ends(p))
	})
}

// TestAProcedureInsteadOfTheCauses ends the one that was named, and no other.
func TestAProcedureInsteadOfTheCauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"))
		s := newSite(t, "", p)
		req := engine.Request{Book: shipped(t, "sandbox-stuck"), Procedure: "manual-termination", Yes: true, MaxDelete: 1}
		_, err := engine.Start(t.Context(), s.env(t), req, &person{})
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "nothing is named")
		assert.NoDirExists(t, string(s.disk()))
		req.Word = "prod/loop0001"
		run := s.run(t, req, &person{})
		assert.Equal(t, "done true", stateOfStep(t, run, "end-named"))
		assert.Equal(t, "not_selected ", stateOfStep(t, run, "end-loop"))
		assert.Equal(t, map[string]int{"loop0001": 1}, ends(p))
		req.Procedure = "manual-terminaton"
		_, err = engine.Start(t.Context(), s.env(t), req, &person{})
		assert.Contains(t, fault.HintOf(err), "manual-termination")
	})
}

// TestACleanupAsTheCommandDoesIt: the plan is that of cleanup, with its guards and its journal.
func TestACleanupAsTheCommandDoesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"), calm("calm0001"))
		s := newSite(t, "", p)
		run := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Procedure: "bulk-cleanup", UntilOK: time.Minute, Every: time.Second}, &person{answer: typesWords})
		assert.Equal(t, "done true", stateOfStep(t, run, "bulk"))
		assert.Equal(t, map[string]int{"loop0001": 1, "loop0002": 1}, ends(p))
		assert.Equal(t, "prod/calm0001", run.Step("bulk").Act.Kept[0].Ref, "and the plan says what stays")
		list, errs := s.env(t).Runs().All(t.Context(), runs.VerbCleanup, 0)
		assert.Empty(t, errs)
		require.Len(t, list, 1)
		assert.Equal(t, run.Step("bulk").Act.RunID, list[0].RunID)
	})
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"))
		run := newSite(t, "limits: {max_delete: 1}\n", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Procedure: "bulk-cleanup"}, &person{answer: typesWords})
		assert.Equal(t, "failed false", stateOfStep(t, run, "bulk"))
		assert.Equal(t, 11, fault.ExitCode(run.Err()), "a guard refuses it: %v", run.Err())
		assert.Empty(t, ends(p))
	})
}

// TestAWrongSumIsRun: only what is wrong in what is done keeps a document from being run.
func TestAWrongSumIsRun(t *testing.T) {
	t.Parallel()
	book := written(t, `  steps:
    - id: count
      collect: [count]
      eta: 3m
`+checks)
	watch := &person{}
	run := newSite(t, "", prod(fake.Options{}, calm("calm0001"))).run(t, engine.Request{Book: book}, watch)
	assert.Equal(t, "done true", stateOfStep(t, run, "count"))
	require.Len(t, watch.warnings, 1)
	assert.Contains(t, watch.warnings[0], "the steps take 3m, not 1m")
}

// TestAManualStepAsksUntilItIsAnswered: Enter is done, skip is skipped, and anything else is no answer.
// What is to be found out is asked only when it is done.
func TestAManualStepAsksUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	spec := `  steps:
    - id: look
      title: Look
      manual: Look at it.
      ask: What does it say?
      eta: 1m
` + checks
	for name, tc := range map[string]struct {
		typed []string
		want  string
		asked int
	}{
		"Enter":              {[]string{"", "red"}, "done ", 2},
		"a text, then Enter": {[]string{"no", "later", "", "red"}, "done ", 4},
		"a text, then skip":  {[]string{"no", "Skip"}, "skipped ", 2},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			left := tc.typed
			watch := &person{answer: func(ops.Question) (string, bool) {
				if len(left) == 0 {
					return "", false
				}
				text := left[0]
				left = left[1:]
				return text, true
			}}
			run := newSite(t, "", prod(fake.Options{}, calm("calm0001"))).run(t, engine.Request{Book: written(t, spec)}, watch)
			look := run.Step("look")
			assert.Equal(t, tc.want, stateOfStep(t, run, "look"))
			require.Len(t, watch.questions, tc.asked)
			assert.Contains(t, look.Evidence, "it will be asked: What does it say?")
			if tc.want == "done " {
				require.Len(t, look.Answers, 1)
				assert.Equal(t, "red", look.Answers[0].Answer)
			}
		})
	}
}

// TestADocumentWithMistakesIsNotRun.
func TestADocumentWithMistakesIsNotRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", prod(fake.Options{}))
	book := written(t, `  steps:
    - id: wrong
      title: Wrong
      check: stats.activ > 3
`+checks)
	_, err := engine.Start(t.Context(), s.env(t), engine.Request{Book: book}, &person{})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	require.ErrorContains(t, err, "stats.activ")
	assert.NoDirExists(t, string(s.disk()))
}

// TestTheRecordHasNoSecrets: neither in what a person answers nor in what is shown afterwards.
func TestTheRecordHasNoSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "", prod(fake.Options{}, calm("calm0001")))
		book := written(t, `  steps:
    - id: ask
      title: Ask
      manual: Look.
      ask: What is it?
      eta: 1m
`+checks)
		watch := &person{answer: func(q ops.Question) (string, bool) {
			if strings.HasPrefix(q.Prompt, "What") {
				return "it is AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI now", true
			}
			return "", true
		}}
		run := s.run(t, engine.Request{Book: book}, watch)
		assert.Contains(t, run.Step("ask").Answers[0].Answer, "AWS_SECRET_ACCESS_KEY=[redacted]")
		text, err := os.ReadFile(filepath.Join(string(s.disk()), run.ID+".jsonl"))
		require.NoError(t, err)
		assert.Contains(t, string(text), "AWS_SECRET_ACCESS_KEY")
		assert.NotContains(t, string(text), "wJalr")
	})
}
