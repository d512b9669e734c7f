package engine_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/providers"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestARepair: records without a sandbox are marked after the gate, and the effect is seen by count.
func TestARepair(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		watch *person
		want  string
		mark  bool
	}{
		"allowed": {watch: &person{answer: typesWords}, want: "done true", mark: true},
		"no":      {watch: &person{answer: saysNo}, want: "skipped "},
		"nobody":  {watch: &person{}, want: "pending "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := prod(fake.Options{}, calm("live0001"), calm("live0002"), calm("live0003"), calm("live0004"))
				s := newSite(t, "", p)
				at := time.Now().Add(-time.Hour)
				for _, id := range []string{"live0001", "live0002", "live0003", "live0004", "gone0001"} {
					require.NoError(t, s.store.PutRecord(t.Context(), store.Record{Provider: "prod", ID: id, State: sandbox.StateRunning, CreatedAt: at, UpdatedAt: at}))
				}
				book := written(t, `  steps:
    - id: compare
      collect: [records]
      title: Compare
      eta: 1m
    - id: differ
      title: They differ
      check: records.differ > 0
  procedures:
    - id: repair
      title: Repair
      steps:
        - id: fix
          title: Repair the records
          act:
            action: reconcile
            records: store
          gate: count
          expect: records.differ == 0
          within: 1m
          eta: 1m
`+checks)
				run := s.run(t, engine.Request{Book: book, Procedure: "repair"}, tc.watch)
				assert.Equal(t, tc.want, stateOfStep(t, run, "fix"), run.Step("fix").Reason)
				records, err := s.store.Records(t.Context(), "prod")
				require.NoError(t, err)
				marked := slices.ContainsFunc(records, func(r store.Record) bool { return r.State != sandbox.StateRunning })
				assert.Equal(t, tc.mark, marked)
				assert.Empty(t, ends(p))
				if tc.mark {
					assert.Equal(t, "done true", stateOfStep(t, run, "differ"))
					assert.Equal(t, "prod/gone0001", run.Step("fix").Act.Targets[0].Ref)
				}
			})
		})
	}
}

const emergency = `  steps:
    - id: quotas
      collect: [quota]
      title: Read the quotas
      eta: 1m
  procedures:
    - id: urgent
      title: Act
      steps:
        - id: all
          title: End what is not critical
          when: quota.used >= 80%
          act:
            action: cleanup
            emergency: true
          gate: name
          expect: stats.active == 0
          within: 1m
          eta: 1m
` + checks

// TestAnEmergencyIsNamed: only the provider whose quota is nearly full, and only by its name.
func TestAnEmergencyIsNamed(t *testing.T) {
	t.Parallel()
	full := []providers.Quota{{Name: "sandboxes", Used: new(9.0), Limit: new(10.0)}}
	free := []providers.Quota{{Name: "sandboxes", Used: new(1.0), Limit: new(10.0)}}
	for name, tc := range map[string]struct {
		quotas  []providers.Quota
		watch   *person
		req     engine.Request
		want    string
		cleaned int
	}{
		"typed":             {quotas: full, watch: &person{answer: typesWords}, cleaned: 1},
		"yes does not name": {quotas: full, watch: &person{}, req: engine.Request{Yes: true, MaxDelete: 50}, want: "pending "},
		"a flag names":      {quotas: full, watch: &person{}, req: engine.Request{Yes: true, MaxDelete: 50, Production: []string{"prod"}}, cleaned: 1},
		"far from full":     {quotas: free, watch: &person{answer: typesWords}, want: "skipped "},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := prod(fake.Options{Quotas: tc.quotas}, calm("calm0001"))
			s := newSite(t, "", p)
			tc.req.Book, tc.req.Procedure = written(t, emergency), "urgent"
			run := s.run(t, tc.req, tc.watch)
			assert.Len(t, p.Calls(fake.OpCleanup), tc.cleaned, "%s: %s", run.Step("all").State, run.Step("all").Reason)
			if tc.want != "" {
				assert.Equal(t, tc.want, stateOfStep(t, run, "all"))
			}
			if tc.watch.answer != nil && tc.cleaned > 0 {
				assert.Equal(t, "prod", tc.watch.questions[0].Word)
			}
		})
	}
}

// TestSuspectsNeedAPerson: one that leaks and is at work is no stuck one, and no flag ends it.
func TestSuspectsNeedAPerson(t *testing.T) {
	t.Parallel()
	book := `  steps:
    - id: all
      collect: [diagnose]
      title: Diagnose
      eta: 1m
  causes:
    - theory: memory_leak
      steps:
        - id: end
          title: End them
          act:
            action: terminate
            targets: cause
          gate: yes
          expect: diagnose.cause != "memory_leak"
          within: 10s
          eta: 1m
` + checks
	synctest.Test(t, func(t *testing.T) {
		leak := alive("leak0001")
		leak.Logs = []sandbox.LogLine{{At: time.Now(), Stream: "stdout", Text: "step 7 done"}}
		from := time.Now().Add(-time.Minute)
		var n atomic.Int64
		leak.Usage = func(time.Time) sandbox.Usage {
			i := n.Add(1)
			return sandbox.Usage{
				At: from.Add(time.Duration(i) * 6 * time.Second), CPUSeconds: new(float64(i)), Operations: new(i * 100), PIDs: new(int64(3)), OOMKills: new(int64(0)),
				MemoryBytes: new((100 + 60*i) * sandbox.MiB), MemoryLimitBytes: new(int64(1024 * sandbox.MiB)), Source: "cgroup2 + /proc",
			}
		}
		p := prod(fake.Options{}, leak)
		s := newSite(t, "", p)
		d, err := look.Diagnose(t.Context(), s.env(t), look.DiagnoseRequest{}, quiet{})
		require.NoError(t, err)
		if len(d.Suspected) == 0 {
			t.Fatalf("nothing is suspected: %+v", d.Causes)
		}
		run := s.run(t, engine.Request{Book: written(t, book), Yes: true, MaxDelete: 5}, &person{})
		assert.Empty(t, ends(p))
		assert.Equal(t, "skipped ", stateOfStep(t, run, "end"))
		assert.Contains(t, run.Step("end").Reason, "not known to be stuck")
		run = s.run(t, engine.Request{Book: written(t, book)}, &person{answer: typesWords})
		assert.Equal(t, map[string]int{"leak0001": 1}, ends(p))
		assert.Equal(t, "done true", stateOfStep(t, run, "end"))
	})
}

// quiet is an observer of reads.
type quiet struct{ ops.Observer }

func (quiet) Note(string)                  {}
func (quiet) Warn(string)                  {}
func (quiet) Progress(string) ops.Progress { return silence{} }
func (quiet) Item(any)                     {}

// TestEveryCollectorReads: each gives an answer, and fails alone.
func TestEveryCollectorReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, calm("calm0001"))
		book := written(t, `  steps:
    - id: all
      title: Read everything
      collect: [count, stuck, logs, resources, cleanup, diagnose, inspect, verify, quota, records, tasks, cron, doctor]
      eta: 1m
`+checks)
		run := newSite(t, "", p).run(t, engine.Request{Book: book, Word: "prod/calm0001"}, &person{})
		step := run.Step("all")
		require.Equal(t, engine.Done, step.State, step.Reason)
		by := map[string]bool{}
		for _, a := range step.Answers {
			by[a.By] = true
		}
		for _, id := range []string{"count", "stuck", "logs", "resources", "cleanup", "diagnose", "inspect", "verify", "doctor", "records", "tasks", "cron"} {
			assert.True(t, by[id], id)
		}
		assert.Len(t, p.Calls(fake.OpStats), 2+1, "diagnose, the one sandbox and verify read the counters once each")
	})
}

// TestWhatIsFalseOfOneProvider: what is proved must hold at all of them, what is wrong at one.
func TestWhatIsFalseOfOneProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		other := fake.New(fake.Options{Name: "other"})
		other.Add(calm("calm0002"))
		s := newSite(t, "", prod(fake.Options{}), other)
		book := written(t, `  steps:
    - id: count
      collect: [count]
      title: Count
      eta: 1m
    - id: some
      title: One is empty
      check: stats.active == 0
  verification:
    - id: all
      title: All are empty
      check: stats.active == 0
`)
		run := s.run(t, engine.Request{Book: book}, &person{})
		assert.Equal(t, "done true", stateOfStep(t, run, "some"))
		assert.Equal(t, "done false", stateOfStep(t, run, "all"))
		assert.Contains(t, run.Step("all").Evidence, "other: 1 active, target 0")
		assert.Equal(t, 10, fault.ExitCode(run.Err()))
	})
}

// TestAnAnswerThatTakesItsTime: what has changed meanwhile stays.
func TestAnAnswerThatTakesItsTime(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{5 * time.Second, 3 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"))
			s := newSite(t, "", p)
			watch := &person{answer: func(q ops.Question) (string, bool) {
				if q.Word == "2" {
					<-time.After(took)
					assert.NoError(t, p.Terminate(t.Context(), "loop0002", providers.TerminateOptions{}))
				}
				return q.Word, true
			}}
			run := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)
			act := run.Step("end-loop").Act
			require.Len(t, act.Outcomes, 1)
			assert.Equal(t, "prod/loop0001", act.Outcomes[0].Ref)
			assert.Equal(t, map[string]int{"loop0001": 1, "loop0002": 1}, ends(p), "the second one by somebody else")
			assert.Equal(t, "done true", stateOfStep(t, run, "end-loop"))
		})
	}
}

// TestAnApprovalIsOfThePlanThatWasShown: flags that allow two allow no other two than those on record.
func TestAnApprovalIsOfThePlanThatWasShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop0001"), looping("loop0002"))
		s := newSite(t, "", p)
		first := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{})
		require.Equal(t, engine.RunWaiting, first.State)
		require.NoError(t, p.Terminate(t.Context(), "loop0001", providers.TerminateOptions{}))
		p.Add(looping("loop0003"))

		_, err := engine.Start(t.Context(), s.env(t), engine.Request{Resume: first.ID, Word: "prod/loop0003"}, &person{})
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "the run is about something else")
		allowed := engine.Request{Resume: first.ID, Yes: true, MaxDelete: 2}
		second := s.run(t, allowed, &person{})
		assert.Equal(t, engine.RunWaiting, second.State)
		require.ErrorContains(t, second.Err(), "the plan of the step end-loop has 1 more than the one that was shown: prod/loop0003")
		assert.Equal(t, map[string]int{"loop0001": 1}, ends(p), "by somebody else")

		third := s.run(t, allowed, &person{})
		assert.Equal(t, "done true", stateOfStep(t, third, "end-loop"))
		assert.Equal(t, map[string]int{"loop0001": 1, "loop0002": 1, "loop0003": 1}, ends(p))
	})
}

// TestAStop is that of the command: the task publishes nothing, and its sandbox is gone.
func TestAStop(t *testing.T) {
	t.Parallel()
	for name, word := range map[string]string{"by its task": "t-k3v9x2mq7abc", "by its sandbox": "prod/work0001"} {
		bubble.Run(t, name, func(t *testing.T) {
			one := calm("work0001")
			one.Sandbox.TaskID = "t-k3v9x2mq7abc"
			p := prod(fake.Options{}, one)
			s := newSite(t, "", p)
			kept := task.New("t-k3v9x2mq7abc", "", task.Spec{Provider: "prod", Command: []string{"true"}, Attempts: 3}, task.Owner{Host: "host-1", PID: 1, Who: "test"}, time.Now())
			kept.State = task.Running
			kept.Attempts = []task.Attempt{{N: 1, Provider: "prod", Sandbox: "work0001", IntentAt: time.Now(), StartedAt: time.Now()}}
			_, _, err := task.Ledger{Store: s.store}.Add(t.Context(), kept)
			require.NoError(t, err)
			run := s.run(t, engine.Request{Book: shipped(t, "idle-after-completion"), Procedure: "kept-on-purpose", Word: word, Yes: true, MaxDelete: 1}, &person{})
			step := run.Step("end-kept")
			require.NotNil(t, step.Act, step.Reason)
			assert.Equal(t, "t-k3v9x2mq7abc", step.Act.Targets[0].Ref)
			assert.Equal(t, "done true", stateOfStep(t, run, "end-kept"), step.Reason)
			assert.Equal(t, map[string]int{"work0001": 1}, ends(p))
		})
	}
}
