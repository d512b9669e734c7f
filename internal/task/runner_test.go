package task_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// inWorld plays one scene in virtual time, with the simulation's world and its rules.
func inWorld(t *testing.T, play func(t *testing.T, s *sim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSim(1)
		s.quiet, s.scripts = true, map[string][]program{}
		defer func() {
			s.mu.Lock()
			for _, p := range s.procs {
				p.die("the end of the test")
			}
			s.mu.Unlock()
			s.late.Wait()
			if len(s.Broken) > 0 || t.Failed() {
				t.Error(s.Report("task"))
			}
		}()
		play(t, s)
	})
}

func works(d time.Duration, exit sandbox.Class) program {
	return program{length: d, exit: exit, talks: time.Second}
}

func plain() task.Spec {
	return task.Spec{
		Provider: "cloud", Command: []string{"work"}, Attempts: 3, Delay: 6 * time.Second, MemoryBytes: 256 * sandbox.MiB, Budget: "b",
		Limits: task.Limits{Command: 5 * time.Minute, Attempt: 10 * time.Minute, Deadline: 35 * time.Minute, Inactivity: time.Minute},
	}
}

// begin adds a task and runs it in a process of its own.
func (s *sim) begin(id string, spec task.Spec, programs ...program) (*proc, <-chan error) {
	t := &truth{id: id, spec: spec}
	s.mu.Lock()
	s.tasks[id], s.scripts[id] = t, programs
	s.order = append(s.order, t)
	s.mu.Unlock()
	p := s.boot("run", "h1", id)
	over := make(chan error, 1)
	go func() {
		_, err := p.does()
		s.mu.Lock()
		p.done = !p.dead
		s.mu.Unlock()
		over <- err
	}()
	return p, over
}

// stop stops a task from another process, and returns both errors.
func (s *sim) stop(id string) (forbid, end error) {
	p := s.boot("stop", "h2", id)
	stopper := task.NewStopper(p.options())
	t, forbid := stopper.ForbidPublication(p.ctx, id, "bob")
	if forbid == nil {
		s.mu.Lock()
		s.onStop(p, id, true)
		s.mu.Unlock()
	}
	if forbid == nil || task.TooLate(forbid) {
		_, end = stopper.End(p.ctx, t)
	}
	return forbid, end
}

func (s *sim) sweep(t *testing.T, host string) []task.Adopted {
	t.Helper()
	p := s.boot("sweep", host, "")
	all, err := task.Sweep(p.ctx, p.options())
	require.NoError(t, err)
	return all
}

func (s *sim) now(t *testing.T, id string) task.Task {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	k, found := s.kept(id)
	require.True(t, found)
	return k
}

// hurt plans a fault. Where processes run already, the lock is held.
func (s *sim) hurt(place, op, harm string, from, long time.Duration) {
	s.harms = append(s.harms, harmful{place, op, harm, from, from + long, 1})
}

func classes(t task.Task) (all []sandbox.Class) {
	for _, a := range t.Attempts {
		all = append(all, a.Exit.Class)
	}
	return all
}

// TestOutcomes checks the result of a task by the exits of its programs.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	const ok, killed, oom = sandbox.ClassOK, sandbox.ClassKilledUnknown, sandbox.ClassOOM
	few := func(attempts int) task.Spec { s := plain(); s.Attempts = attempts; return s }
	push := plain()
	push.Push = "origin=work"
	command := plain()
	command.Publish = "make release"
	for name, c := range map[string]struct {
		spec     task.Spec
		programs []program
		state    task.State
		classes  []sandbox.Class
		code     int
		publish  task.PublishState
	}{
		"it succeeds":                  {plain(), []program{works(10*time.Second, ok)}, task.Completed, []sandbox.Class{ok}, 0, ""},
		"it fails":                     {plain(), []program{works(time.Second, sandbox.ClassAgentError)}, task.Failed, []sandbox.Class{sandbox.ClassAgentError}, 1, ""},
		"it is killed, then succeeds":  {plain(), []program{works(time.Second, killed), works(time.Second, ok)}, task.Completed, []sandbox.Class{killed, ok}, 0, ""},
		"it is killed to the end":      {few(2), []program{works(time.Second, killed)}, task.Failed, []sandbox.Class{killed, killed}, 137, ""},
		"it needs more memory":         {plain(), []program{works(time.Second, oom), works(time.Second, ok)}, task.Completed, []sandbox.Class{oom, ok}, 0, ""},
		"it needs ever more memory":    {plain(), []program{works(time.Second, oom)}, task.Failed, []sandbox.Class{oom, oom}, 137, ""},
		"its sandbox vanishes, once":   {few(2), []program{works(3*time.Second, sandbox.ClassGone), works(time.Second, ok)}, task.Completed, []sandbox.Class{sandbox.ClassGone, ok}, 0, ""},
		"its only sandbox vanishes":    {few(1), []program{works(3*time.Second, sandbox.ClassGone), works(time.Second, ok)}, task.Failed, []sandbox.Class{sandbox.ClassGone}, 125, ""},
		"its sandboxes vanish":         {few(3), []program{works(3*time.Second, sandbox.ClassGone)}, task.Failed, []sandbox.Class{sandbox.ClassGone, sandbox.ClassGone, sandbox.ClassGone}, 125, ""},
		"it is pushed":                 {push, []program{works(time.Second, ok)}, task.Completed, []sandbox.Class{ok}, 0, task.PublishDone},
		"it is published by a command": {command, []program{works(time.Second, ok)}, task.Completed, []sandbox.Class{ok}, 0, task.PublishDone},
		"a failure is not published":   {push, []program{works(time.Second, sandbox.ClassAgentError)}, task.Failed, []sandbox.Class{sandbox.ClassAgentError}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				_, over := s.begin("t-1", c.spec, c.programs...)
				require.NoError(t, <-over)
				now := s.now(t, "t-1")
				assert.Equal(t, c.state, now.State, now.Refused)
				assert.Equal(t, c.classes, classes(now))
				assert.Equal(t, c.code, now.ExitCode())
				assert.Equal(t, c.publish, now.Publish.State)
				assert.Empty(t, s.living("t-1"))
				for i := 1; i < len(now.Attempts); i++ {
					before, after := now.Attempts[i-1], now.Attempts[i]
					assert.False(t, before.GoneAt.After(after.IntentAt), "one after the other")
					assert.GreaterOrEqual(t, after.IntentAt.Sub(before.EndedAt), before.Retry.Delay)
					if before.Exit.Class == oom {
						assert.Equal(t, 2*before.MemoryMB, after.MemoryMB)
					}
				}
			})
		})
	}
}

// TestKilledAfterTwoMessages (S0-25): both attempts are in the report, about six seconds
// apart.
func TestKilledAfterTwoMessages(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.tune = func(_ *proc, o *task.Options) { o.Jitter = nil }
		first := program{length: 15 * time.Second, talks: 7 * time.Second, agent: true, exit: sandbox.ClassKilledUnknown}
		second := program{length: 13 * time.Second, talks: 4 * time.Second, agent: true, exit: sandbox.ClassOK}
		_, over := s.begin("t-1", plain(), first, second)
		require.NoError(t, <-over)
		now := s.now(t, "t-1")
		require.Equal(t, []sandbox.Class{sandbox.ClassKilledUnknown, sandbox.ClassOK}, classes(now))
		assert.Equal(t, 2, *now.Attempts[0].Messages)
		assert.Equal(t, 3, *now.Attempts[1].Messages)
		assert.Equal(t, "s-1", now.Attempts[1].Session)
		assert.Equal(t, 6*time.Second, now.Attempts[0].Retry.Delay)
		assert.InDelta(t, 36, time.Since(s.Began).Seconds(), 5)
	})
}

// TestLimits reaches each of the four limits.
func TestLimits(t *testing.T) {
	t.Parallel()
	loud := program{length: forever, talks: time.Second, exit: sandbox.ClassOK}
	silent := program{length: forever, exit: sandbox.ClassOK}
	busy := func(b *box) sandbox.Usage {
		s := time.Since(b.made).Seconds() * 0.05
		return sandbox.Usage{CPUSeconds: &s}
	}
	idle := func(b *box) sandbox.Usage {
		s := time.Since(b.made).Seconds() * 0.01
		return sandbox.Usage{CPUSeconds: &s}
	}
	for name, c := range map[string]struct {
		program  program
		change   func(*task.Spec)
		uses     func(*box) sandbox.Usage
		reason   task.Reason
		after    time.Duration
		extended bool
	}{
		"command":            {loud, nil, nil, task.ReasonCommand, 5 * time.Minute, false},
		"attempt":            {loud, func(s *task.Spec) { s.Limits.Command = 0 }, nil, task.ReasonAttempt, 10 * time.Minute, false},
		"deadline":           {loud, func(s *task.Spec) { s.Limits = task.Limits{Deadline: 35 * time.Minute} }, nil, task.ReasonDeadline, 35 * time.Minute, false},
		"inactivity":         {silent, nil, nil, task.ReasonInactivity, time.Minute, false},
		"inactivity, idle":   {silent, nil, idle, task.ReasonInactivity, time.Minute, false},
		"inactivity, busy":   {silent, func(s *task.Spec) { s.Limits.Command = 0 }, busy, task.ReasonInactivity, 5 * time.Minute, true},
		"inactivity off":     {silent, func(s *task.Spec) { s.NoInactivity = true }, nil, task.ReasonCommand, 5 * time.Minute, false},
		"the first is right": {silent, func(s *task.Spec) { s.Limits.Command = 30 * time.Second }, nil, task.ReasonCommand, 30 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.uses = c.uses
				spec := plain()
				if c.change != nil {
					c.change(&spec)
				}
				_, over := s.begin("t-1", spec, c.program)
				require.NoError(t, <-over)
				now := s.now(t, "t-1")
				assert.Equal(t, task.TimedOut, now.State)
				assert.Equal(t, c.reason, now.Reason)
				assert.Equal(t, c.reason, now.Last().Expired)
				assert.Equal(t, c.extended, now.Last().Extended)
				assert.InDelta(t, c.after.Seconds(), now.EndedAt.Sub(now.Attempts[0].IntentAt).Seconds(), 5)
				assert.Equal(t, 124, now.ExitCode())
			})
		})
	}
}

// TestAnOpenBreakerEndsNoAttempt: an API that is away for seconds opens the circuit breaker of this process for longer.
func TestAnOpenBreakerEndsNoAttempt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.hurt("cloud", "exit", "breaker", 20*time.Second, 30*time.Second)
		s.hurt("cloud", "logs", "breaker", 20*time.Second, 30*time.Second)
		_, over := s.begin("t-1", plain(), works(2*time.Minute, sandbox.ClassOK))
		require.NoError(t, <-over)
		now := s.now(t, "t-1")
		assert.Equal(t, task.Completed, now.State, now.Refused)
		assert.Len(t, now.Attempts, 1)
	})
}

// TestOneRefusalEndsNoAttempt: a proxy refuses queries for some seconds, as if the credentials were wrong.
func TestOneRefusalEndsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		long  time.Duration
		class sandbox.Class
	}{"for seconds": {20 * time.Second, sandbox.ClassOK}, "for good": {time.Hour, sandbox.ClassTransport}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.hurt("cloud", "exit", "refused", 10*time.Second, tc.long)
				spec := plain()
				spec.Attempts = 1
				_, over := s.begin("t-1", spec, works(2*time.Minute, sandbox.ClassOK))
				require.NoError(t, <-over)
				assert.Equal(t, []sandbox.Class{tc.class}, classes(s.now(t, "t-1")))
			})
		})
	}
}

// TestACopyOfACreateIsEnded: a proxy has sent the create twice, and only one answer came.
func TestACopyOfACreateIsEnded(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.copies = true
		_, over := s.begin("t-1", plain(), works(20*time.Second, sandbox.ClassOK))
		require.NoError(t, <-over)
		assert.Equal(t, task.Completed, s.now(t, "t-1").State)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Len(t, s.boxes, 2)
		for _, b := range s.boxes {
			assert.False(t, b.alive(time.Now()), "%s is left", b)
		}
	})
}

// TestWhatCannotBeAskedIsNotSilent: while a sandbox does not answer, nothing is known of its program. A definite answer,
// that it is broken, is a failure of the infrastructure and is tried again.
func TestWhatCannotBeAskedIsNotSilent(t *testing.T) {
	t.Parallel()
	away := func(b *box) bool {
		age := time.Since(b.made)
		return age > 20*time.Second && age < 3*time.Minute
	}
	t.Run("it comes back", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			s.unheard = away
			s.probes = func() (providers.Health, error) {
				return providers.Health{}, fault.New(fault.KindUnavailable, "no answer")
			}
			_, over := s.begin("t-1", plain(), program{length: 2 * time.Minute, exit: sandbox.ClassOK})
			require.NoError(t, <-over)
			now := s.now(t, "t-1")
			assert.Equal(t, task.Completed, now.State)
			assert.Len(t, now.Attempts, 1)
		})
	})
	t.Run("it never does, and its provider answers", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			s.unheard = func(b *box) bool { return b.id == "b1" && time.Since(b.made) > 20*time.Second }
			s.probes = func() (providers.Health, error) { return providers.Health{Verdict: sandbox.Unknown}, nil }
			spec := plain()
			spec.Limits.Inactivity = 90 * time.Second
			_, over := s.begin("t-1", spec, works(4*time.Minute, sandbox.ClassOK))
			require.NoError(t, <-over)
			now := s.now(t, "t-1")
			assert.Equal(t, []sandbox.Class{sandbox.ClassInfra, sandbox.ClassOK}, classes(now))
			assert.Equal(t, sandbox.Probable, now.Attempts[0].Exit.Confidence)
			assert.InDelta(t, 110, now.Attempts[0].EndedAt.Sub(now.Attempts[0].StartedAt).Seconds(), 20, "the longer of both limits")
		})
	})
	t.Run("it is broken", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			first := true
			s.unheard = func(b *box) bool { return first && away(b) }
			s.probes = func() (providers.Health, error) {
				first = false
				return providers.Health{Verdict: sandbox.False, Condition: providers.ConditionBroken}, nil
			}
			_, over := s.begin("t-1", plain(), program{length: 2 * time.Minute, exit: sandbox.ClassOK}, works(time.Second, sandbox.ClassOK))
			require.NoError(t, <-over)
			now := s.now(t, "t-1")
			assert.Equal(t, task.Completed, now.State)
			require.Len(t, now.Attempts, 2)
			assert.Equal(t, sandbox.ClassInfra, now.Attempts[0].Exit.Class)
			assert.Empty(t, now.Attempts[0].Expired)
		})
	})
}

// TestAStoppedSandboxIsOver: an engine that is restarted stops its containers, whose programs have ended with them. Their
// exits are inside and cannot be read any more: the task does not wait for its limit, and tries again.
func TestAStoppedSandboxIsOver(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.leaves = true
		s.unheard = func(b *box) bool { return b.id == "b1" && !b.alive(time.Now()) }
		s.probes = func() (providers.Health, error) {
			return providers.Health{Verdict: sandbox.False, Condition: providers.ConditionResumable}, nil
		}
		_, over := s.begin("t-1", plain(), works(2*time.Minute, sandbox.ClassOK), works(time.Second, sandbox.ClassOK))
		s.rest(30 * time.Second)
		s.mu.Lock()
		s.find("b1").ended = time.Now()
		s.mu.Unlock()
		require.NoError(t, <-over)
		now := s.now(t, "t-1")
		assert.Equal(t, task.Completed, now.State)
		assert.Equal(t, []sandbox.Class{sandbox.ClassGone, sandbox.ClassOK}, classes(now))
		assert.Less(t, now.Attempts[0].EndedAt.Sub(now.Attempts[0].StartedAt), time.Minute)
	})
}

// TestAnEndWaitsForTheBreaker: a program ends while calls to its engine are paused, and its sandbox is not left.
func TestAnEndWaitsForTheBreaker(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.pauses = func() bool { return time.Since(s.Began) < 50*time.Second }
		_, over := s.begin("t-1", plain(), works(20*time.Second, sandbox.ClassOK))
		require.NoError(t, <-over)
		now := s.now(t, "t-1")
		assert.Equal(t, task.Completed, now.State)
		assert.Len(t, now.Attempts, 1)
		assert.Empty(t, s.living("t-1"))
	})
}

// TestAGrowingSessionIsLife: an agent without output that writes its session file is not
// ended.
func TestAGrowingSessionIsLife(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.execs = func(c providers.Command) (sandbox.Exit, error) {
			code := 0
			size := strings.Repeat("1", 1+int(time.Since(s.Began)/(20*time.Second)))
			_, err := c.Stdout.Write([]byte(size + "\n"))
			return sandbox.Exit{Code: &code}, err
		}
		spec := plain()
		spec.Session = "session.jsonl"
		_, over := s.begin("t-1", spec, program{length: 3 * time.Minute, exit: sandbox.ClassOK})
		require.NoError(t, <-over)
		now := s.now(t, "t-1")
		assert.Equal(t, task.Completed, now.State)
		assert.True(t, now.Last().Extended)
	})
}

// TestStops stops a task at every stage: nothing of it becomes public, and all of it
// is gone soon.
func TestStops(t *testing.T) {
	t.Parallel()
	push := plain()
	push.Push = "origin=work"
	for name, c := range map[string]struct {
		spec  task.Spec
		at    string // where its runner stands
		after time.Duration
		harm  func(*sim)
	}{
		"while it runs":                {push, "", 5 * time.Second, nil},
		"before its answer is heard":   {push, "created", 5 * time.Second, nil},
		"while the create hangs":       {push, "", 3 * time.Second, func(s *sim) { s.hurt("cloud", "create", "hangs", 0, time.Minute) }},
		"while it waits for another":   {push, "", 14 * time.Second, nil},
		"while it collects":            {push, "collected", 60 * time.Second, nil},
		"at the gate":                  {push, "before the gate", 60 * time.Second, nil},
		"between the gate and the end": {push, "gate", 60 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				if c.harm != nil {
					c.harm(s)
				}
				s.tune = func(p *proc, o *task.Options) {
					o.Jitter = nil
					if p.verb == "run" && c.at != "" {
						p.doom, p.stiff = c.at, 3*time.Minute
					}
				}
				_, over := s.begin("t-1", c.spec, works(10*time.Second, sandbox.ClassKilledUnknown), works(30*time.Second, sandbox.ClassOK))
				s.rest(c.after)
				forbid, end := s.stop("t-1")
				require.NoError(t, forbid)
				require.NoError(t, end)
				require.NoError(t, <-over)
				now := s.now(t, "t-1")
				assert.Equal(t, task.Stopped, now.State)
				assert.Equal(t, 130, now.ExitCode())
				assert.Zero(t, s.tasks["t-1"].published)
				assert.Equal(t, "bob", now.StopBy)
			})
		})
	}
}

// TestAStopOfAnotherProcessIsNoticed measures how soon a runner leaves a hanging step.
func TestAStopOfAnotherProcessIsNoticed(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]bool{"by looking": false, "by its lease": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				spec := plain()
				spec.NoPolling = off
				_, over := s.begin("t-1", spec, program{length: forever, exit: sandbox.ClassOK})
				s.rest(10 * time.Second)
				began := time.Now()
				forbid, end := s.stop("t-1")
				require.NoError(t, errors.Join(forbid, end))
				require.NoError(t, <-over)
				assert.Less(t, time.Since(began), 7*time.Second)
			})
		})
	}
}

// TestATooLateStop: a stop after the publication is refused.
func TestATooLateStop(t *testing.T) {
	t.Parallel()
	local, push := plain(), plain()
	local.Publish, push.Push = "make release", "origin=work"
	for name, c := range map[string]struct {
		spec task.Spec
		at   string
		want error
	}{
		"a command is at work": {local, "gate", task.ErrPublishing},
		"it is pushed":         {push, "pushed", task.ErrPublished},
		"it is over":           {push, "", task.ErrPublished},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.tune = func(p *proc, _ *task.Options) {
					if p.verb == "run" && c.at != "" {
						p.doom, p.stiff = c.at, time.Minute
					}
				}
				_, over := s.begin("t-1", c.spec, works(5*time.Second, sandbox.ClassOK))
				s.rest(30 * time.Second)
				forbid, _ := s.stop("t-1")
				require.ErrorIs(t, forbid, c.want)
				assert.Equal(t, fault.KindRefused, fault.KindOf(forbid))
				require.NoError(t, <-over)
				assert.Equal(t, task.Completed, s.now(t, "t-1").State)
			})
		})
	}
}

// TestAStopSettlesWhatADeadRunnerHasPublished records the publication, ends the sandbox,
// and names what is public.
func TestAStopSettlesWhatADeadRunnerHasPublished(t *testing.T) {
	t.Parallel()
	command, push, kept := plain(), plain(), plain()
	command.Publish, push.Push, kept.Push, kept.KeepAlive = "make release", "origin=work", "origin=work", time.Hour
	for name, c := range map[string]struct {
		spec    task.Spec
		rest    time.Duration
		want    error
		kind    fault.Kind
		state   task.State
		publish task.PublishState
	}{
		"pushed":            {push, 0, task.ErrPublished, fault.KindRefused, task.Completed, task.PublishDone},
		"pushed and kept":   {kept, 0, task.ErrPublished, fault.KindRefused, task.Completed, task.PublishDone},
		"a command":         {command, time.Minute, task.ErrPublicationUnknown, fault.KindUnverified, task.Failed, task.PublishUnknown},
		"a command, leased": {command, 0, task.ErrPublishing, fault.KindRefused, task.Running, task.PublishBegun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.tune = func(p *proc, _ *task.Options) {
					if p.verb == "run" {
						p.doom, p.deadly = "pushed", true
					}
				}
				_, over := s.begin("t-1", c.spec, works(20*time.Second, sandbox.ClassOK))
				require.Error(t, <-over)
				s.rest(c.rest)
				forbid, end := s.stop("t-1")
				require.ErrorIs(t, forbid, c.want)
				assert.Equal(t, c.kind, fault.KindOf(forbid))
				now := s.now(t, "t-1")
				assert.Equal(t, c.state, now.State)
				assert.Equal(t, c.publish, now.Publish.State)
				if c.state.Final() {
					require.NoError(t, end)
					assert.Contains(t, forbid.Error()+fault.HintOf(forbid), now.Publish.Target)
					assert.Equal(t, c.spec.KeepAlive > 0, len(s.living("t-1")) > 0)
				}
				if c.publish == task.PublishDone {
					assert.ErrorContains(t, forbid, "commit c")
				}
			})
		})
	}
}

// TestACreateWithoutAnAnswer finds the sandbox, or waits until none can be made any more.
func TestACreateWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm  string
		least time.Duration
		gone  string
		free  bool
	}{
		"it was made":   {"unanswered", 0, "verified", false},
		"nothing comes": {"lost", time.Minute, "two searches", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.hurt("cloud", "create", c.harm, 0, 10*time.Second)
				_, over := s.begin("t-1", plain(), works(20*time.Second, sandbox.ClassOK))
				require.NoError(t, <-over)
				now := s.now(t, "t-1")
				assert.Equal(t, task.Completed, now.State)
				require.Len(t, now.Attempts, 2)
				assert.Contains(t, now.Attempts[0].Gone, c.gone)
				assert.Equal(t, c.free, now.Attempts[0].Retry.Free)
				assert.GreaterOrEqual(t, now.Attempts[0].GoneAt.Sub(now.Attempts[0].IntentAt), c.least)
			})
		})
	}
}

// TestAnEndThatIsNotSeen is reported, and verified by a later sweep.
func TestAnEndThatIsNotSeen(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		spec := plain()
		spec.Session = "x" // the sandbox lingers
		s.hurt("cloud", "terminate", "lost", 0, 2*time.Minute)
		_, lingers := s.begin("t-2", spec, works(5*time.Second, sandbox.ClassOK))
		err := <-lingers
		require.ErrorIs(t, err, task.ErrUnverified)
		assert.Equal(t, fault.KindUnverified, fault.KindOf(err))
		assert.NotEmpty(t, fault.HintOf(err))
		now := s.now(t, "t-2")
		assert.False(t, now.State.Final())
		assert.Equal(t, task.Completed, now.Verdict)
		s.rest(3 * time.Minute)
		require.Len(t, s.sweep(t, "h2"), 1)
		assert.Equal(t, task.Completed, s.now(t, "t-2").State)
		assert.True(t, s.now(t, "t-2").Attempts[0].EndRequest.Acknowledged)
	})
}

// TestASweepLeavesAloneForLongerWhatItCouldNotSettle: an end that cannot be proved costs no start of sbx for
// ever, a stop by name asks at once, and the person who waits is told once.
func TestASweepLeavesAloneForLongerWhatItCouldNotSettle(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		said := map[string]int{}
		s.tune = func(_ *proc, o *task.Options) { o.Observer = &heard{said: said} }
		spec := plain()
		spec.Session, spec.Attempts = "x", 2 // the sandbox lingers
		s.hurt("cloud", "terminate", "lost", 0, 2*time.Hour)
		_, lingers := s.begin("t-1", spec, works(5*time.Second, sandbox.ClassInfra))
		require.ErrorIs(t, <-lingers, task.ErrUnverified)
		for text, n := range said {
			assert.Equal(t, 1, n, text)
		}
		tries := 0
		for range 6 * 60 { // an hour
			tries += len(s.sweep(t, "h2"))
			s.rest(10 * time.Second)
		}
		assert.Equal(t, 6, tries, "after 1, 2, 4, 8, 16 and 32 minutes")
		s.mu.Lock()
		s.harms = nil
		s.mu.Unlock()
		assert.Empty(t, s.sweep(t, "h2"), "it is left alone")
		_, err := s.stop("t-1")
		require.NoError(t, err)
		assert.Equal(t, task.Failed, s.now(t, "t-1").State)
	})
}

// TestWhatWasAskedBeforeIsKnown: a takeover uses the requests to end that were not
// answered, or whose sender died before the answer.
func TestWhatWasAskedBeforeIsKnown(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"it was not answered": false, "who asked has died": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				spec := plain()
				spec.Session = "x" // the sandbox lingers
				s.hurt("cloud", "terminate", "hangs", 0, time.Minute)
				p, over := s.begin("t-1", spec, works(5*time.Second, sandbox.ClassOK))
				if dies {
					s.rest(10 * time.Second)
					s.mu.Lock()
					p.die("an ending")
					s.mu.Unlock()
				}
				require.Error(t, <-over)
				asked := s.now(t, "t-1").Attempts[0].EndRequest
				require.NotNil(t, asked)
				assert.False(t, asked.Acknowledged)
				s.rest(2 * time.Minute)
				s.sweep(t, "h1")
				require.NotEmpty(t, s.requested)
				assert.True(t, s.requested[len(s.requested)-1].Unconfirmed(), "the next one is told of it")
				assert.Equal(t, task.Completed, s.now(t, "t-1").State)
			})
		})
	}
}

// TestRequestsAreKeptWhereAReadProvesNoEnd also for sandboxes of this host: a container
// daemon may lose a request too.
func TestRequestsAreKeptWhereAReadProvesNoEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ bound, proves, kept bool }{
		"a service":                  {false, false, true},
		"containers of this machine": {true, false, true},
		"processes of this machine":  {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.tune = func(_ *proc, o *task.Options) {
					o.HostBound = func(string) bool { return tc.bound }
					o.ReadsProveEnds = func(string) bool { return tc.proves }
				}
				_, over := s.begin("t-1", plain(), works(5*time.Second, sandbox.ClassOK))
				require.NoError(t, <-over)
				assert.Equal(t, tc.kept, s.now(t, "t-1").Attempts[0].EndRequest != nil)
			})
		})
	}
}

// TestAStoreThatIsAway: a runner waits for the store.
func TestAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.hurt("store", "", "away", 8*time.Second, 10*time.Second)
		_, over := s.begin("t-1", plain(), works(10*time.Second, sandbox.ClassOK))
		require.NoError(t, <-over)
		assert.Equal(t, task.Completed, s.now(t, "t-1").State)
		assert.Len(t, s.now(t, "t-1").Attempts, 1)
	})
}

// TestWaiting shows why a task has not begun; a sweep leaves it to its owner.
func TestWaiting(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		big := plain()
		big.MemoryBytes = 768 * sandbox.MiB
		_, first := s.begin("t-1", big, works(50*time.Second, sandbox.ClassOK))
		s.rest(time.Second)
		_, second := s.begin("t-2", big, works(5*time.Second, sandbox.ClassOK))
		s.rest(40 * time.Second)
		assert.Equal(t, task.Pending, s.now(t, "t-2").State)
		assert.Equal(t, "memory_budget", s.now(t, "t-2").Waits)
		assert.Empty(t, s.sweep(t, "h1"))
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		assert.Equal(t, task.Completed, s.now(t, "t-2").State)
		big.MemoryBytes = 2048 * sandbox.MiB
		_, third := s.begin("t-3", big, works(time.Second, sandbox.ClassOK))
		require.NoError(t, <-third)
		assert.Equal(t, task.Failed, s.now(t, "t-3").State)
		assert.Contains(t, s.now(t, "t-3").Refused, "does not fit")
	})
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.hurt("breaker", "allow", "open", 0, time.Minute)
		_, over := s.begin("t-1", plain(), works(time.Second, sandbox.ClassOK))
		s.rest(10 * time.Second)
		assert.Contains(t, s.now(t, "t-1").Waits, "breaker")
		require.NoError(t, <-over)
		assert.Equal(t, task.Completed, s.now(t, "t-1").State)
	})
}

// TestKeptAndResumed keeps a sandbox after its task, and resumes it.
func TestKeptAndResumed(t *testing.T) {
	t.Parallel()
	healthy := providers.Health{Condition: providers.ConditionHealthy}
	gone := func() (providers.Health, error) { return providers.Health{}, fault.New(fault.KindGone, "410") }
	denied := func() func() (providers.Health, error) {
		times := 0
		return func() (providers.Health, error) {
			if times++; times > 2 {
				return healthy, nil
			}
			return gone()
		}
	}
	for name, c := range map[string]struct {
		probes             func() (providers.Health, error)
		stolen             bool
		resumed, recreated bool
	}{
		"it answers":         {func() (providers.Health, error) { return healthy, nil }, false, true, false},
		"nobody knows":       {func() (providers.Health, error) { return providers.Health{Condition: providers.ConditionUnknown}, nil }, false, true, false},
		"it is gone":         {gone, false, false, true},
		"a 410 that is over": {denied(), false, true, false},
		"it is broken":       {func() (providers.Health, error) { return providers.Health{Condition: providers.ConditionBroken}, nil }, false, false, true},
		"somebody else has":  {func() (providers.Health, error) { return healthy, nil }, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				list := &task.KeepList{Store: s.mem}
				s.probes = c.probes
				s.tune = func(_ *proc, o *task.Options) { o.KeepList = list }
				var ran []providers.Command
				s.execs = func(c providers.Command) (sandbox.Exit, error) {
					ran = append(ran, c)
					code := 0
					return sandbox.Exit{Code: &code, Class: sandbox.ClassOK}, nil
				}
				spec := plain()
				spec.KeepAlive = 5 * time.Minute
				_, over := s.begin("t-1", spec, works(5*time.Second, sandbox.ClassOK))
				require.NoError(t, <-over)
				kept := s.now(t, "t-1").Kept
				require.NotNil(t, kept)
				require.Len(t, s.living("t-1"), 1)
				if c.stolen {
					mine, err := list.Claim(t.Context(), kept.Ref, "t-0")
					require.NoError(t, err)
					require.True(t, mine)
					require.NoError(t, list.Keep(t.Context(), *kept, "t-1"), "late, by a process that was frozen")
				}
				if name == "it is gone" {
					s.mu.Lock()
					s.find(kept.Ref.ID).ended = time.Now()
					s.mu.Unlock()
				}
				spec = plain()
				spec.Sandbox, spec.SessionID = kept.Ref, "s-1"
				_, over = s.begin("t-2", spec, works(5*time.Second, sandbox.ClassOK))
				require.NoError(t, <-over)
				now := s.now(t, "t-2")
				assert.Equal(t, task.Completed, now.State, now.Refused)
				assert.Equal(t, c.resumed, now.Resumed)
				assert.Equal(t, c.recreated, now.Recreated)
				assert.Equal(t, c.stolen, len(s.living("t-1")) == 1, "what is somebody else's is left alone")
				if c.recreated && !c.stolen { // what was not entered costs no attempt and no time, and says nothing of the place
					assert.Equal(t, []sandbox.Class{sandbox.ClassGone, sandbox.ClassOK}, classes(now))
					assert.Equal(t, 1, now.Counted())
					assert.Equal(t, "cloud", now.Attempts[1].Provider)
					assert.Less(t, now.Attempts[1].IntentAt.Sub(now.Attempts[0].EndedAt), 3*time.Second)
				}
				if c.resumed {
					require.Len(t, ran, 1)
					assert.Contains(t, ran[0].Env, "RESUME_SESSION_ID=s-1")
				}
			})
		})
	}
}

// TestSweeps ends everything of a dead owner, at whatever point it died.
func TestSweeps(t *testing.T) {
	t.Parallel()
	push := plain()
	push.Push = "origin=work"
	for _, point := range []string{"intent", "created", "saved", "output", "collected", "before the gate", "gate", "pushed", "ending", "ended"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.tune = func(p *proc, _ *task.Options) {
					if p.verb == "run" {
						p.doom, p.deadly = point, true
					}
				}
				_, over := s.begin("t-1", push, works(20*time.Second, sandbox.ClassOK))
				require.Error(t, <-over)
				for n := 0; !s.now(t, "t-1").State.Final(); n++ {
					require.Less(t, n, 500, "it is never over")
					s.sweep(t, "h1")
					s.rest(10 * time.Second)
				}
				now := s.now(t, "t-1")
				published := s.tasks["t-1"].published == 1
				assert.Equal(t, published, now.Publish.State == task.PublishDone)
				assert.Equal(t, published, now.State == task.Completed)
				if point != "intent" && point != "created" {
					assert.True(t, published, "what its owner did is not lost")
				}
			})
		})
	}
}

// heard is an Observer that remembers the output.
type heard struct {
	mu    sync.Mutex
	lines []string
	said  map[string]int // how often each message was sent; nil = not counted
}

func (h *heard) Changed(task.Task) {}
func (h *heard) Message(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said != nil {
		h.said[text]++
	}
}

func (h *heard) Output(line sandbox.LogLine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line.Text)
}

// TestATakeoverShowsTheOutput completely and once, whether or not the program ended under
// the earlier process.
func TestATakeoverShowsTheOutput(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"saved", "output", "collected", "pushed", "ending"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				ear := &heard{}
				s.tune = func(p *proc, o *task.Options) {
					if p.verb == "run" {
						p.doom, p.deadly = point, true
					} else {
						o.Observer = ear
					}
				}
				push := plain()
				push.Push = "origin=work"
				_, over := s.begin("t-1", push, works(5*time.Second+time.Millisecond, sandbox.ClassOK))
				require.Error(t, <-over)
				now, err := s.boot("again", "h1", "t-1").does()
				require.NoError(t, err)
				assert.Equal(t, task.Completed, now.State)
				assert.Equal(t, []string{"line 1", "line 2", "line 3", "line 4", "line 5"}, ear.lines)
			})
		})
	}
}

// TestASweepWaitsForNoPublication: it hands the task to another process, which publishes
// the saved work with or without the sandbox.
func TestASweepWaitsForNoPublication(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"collected", "before the gate", "gate"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.tune = func(p *proc, _ *task.Options) {
					if p.verb == "run" {
						p.doom, p.deadly = point, true
					}
				}
				push := plain()
				push.Push = "origin=work"
				_, over := s.begin("t-1", push, works(5*time.Second, sandbox.ClassOK))
				require.Error(t, <-over)
				s.mu.Lock()
				for _, b := range s.boxes {
					b.ended = time.Now()
				}
				s.hurt("remote", "", "crawls", time.Since(s.Began), time.Hour)
				s.mu.Unlock()
				for range 20 {
					began := time.Now()
					s.sweep(t, "h1")
					require.Less(t, time.Since(began), time.Second, "whoever starts sbx does not wait for a remote")
					s.rest(10 * time.Second)
				}
				s.rest(5 * time.Minute)
				now := s.now(t, "t-1")
				assert.Equal(t, task.Completed, now.State)
				assert.Equal(t, 1, s.tasks["t-1"].published)
				handed := 0
				for _, p := range s.procs {
					if p.verb == "continue" {
						handed++
					}
				}
				assert.Equal(t, 1, handed, "one process goes on with it")
			})
		})
	}
}

// TestASlowAnswerHidesNoDeadline: no sandbox is requested when the answer to the intent
// comes after the deadline.
func TestASlowAnswerHidesNoDeadline(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		spec := plain()
		spec.Limits.Deadline = 3 * time.Second
		s.hurt("store", "swap", "answers late", 0, 2*time.Second)
		_, over := s.begin("t-1", spec, works(5*time.Second, sandbox.ClassOK))
		require.NoError(t, <-over)
		assert.Equal(t, task.TimedOut, s.now(t, "t-1").State)
		assert.Empty(t, s.boxes)
	})
}

// TestATakeoverPublishesNothingLate: the gate was judged before the deadline, and written
// after it by a process that then died.
func TestATakeoverPublishesNothingLate(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		s.tune = func(p *proc, o *task.Options) {
			if p.verb != "run" {
				return
			}
			o.CrashPoint = func(point string) {
				if point == "before the gate" {
					s.mu.Lock()
					s.hurt("store", "swap", "crawls", time.Since(s.Began), 100*time.Millisecond)
					p.fuse = 4 // it reads, writes, and dies before the answer
					s.mu.Unlock()
				}
			}
		}
		push := plain()
		push.Push, push.Limits.Deadline = "origin=work", 8*time.Second
		_, over := s.begin("t-1", push, works(5*time.Second, sandbox.ClassOK))
		require.Error(t, <-over)
		require.Equal(t, task.Publishing, s.now(t, "t-1").Phase)
		require.Equal(t, "late", s.tasks["t-1"].closed)
		for range 5 {
			s.sweep(t, "h1")
			s.rest(10 * time.Second)
		}
		assert.Zero(t, s.tasks["t-1"].published)
		assert.Equal(t, task.Failed, s.now(t, "t-1").State)
	})
}

// TestAHostThatIsLost: another host ends its tasks.
func TestAHostThatIsLost(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"saved", "gate", "pushed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				s.tune = func(p *proc, _ *task.Options) {
					if p.verb == "run" {
						p.doom, p.deadly = point, true
					}
				}
				spec := plain()
				spec.Push = "origin=work"
				_, over := s.begin("t-1", spec, works(20*time.Second, sandbox.ClassOK))
				require.Error(t, <-over)
				s.rest(10 * time.Minute)
				assert.Empty(t, s.sweep(t, "h2"), "its own host may come back")
				s.rest(2 * time.Hour)
				for range 5 {
					s.sweep(t, "h2")
					s.rest(10 * time.Second)
				}
				now := s.now(t, "t-1")
				assert.True(t, now.State.Final(), now.State)
				assert.Equal(t, point == "pushed", now.Publish.State == task.PublishDone)
			})
		})
	}
}

// TestASlowCollect: collecting is repeated before the work is given up.
func TestASlowCollect(t *testing.T) {
	t.Parallel()
	for long, want := range map[time.Duration]task.State{3 * time.Second: task.Completed, time.Minute: task.Failed} {
		t.Run(long.String(), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				spec := plain()
				spec.Push = "origin=work"
				s.tune = func(_ *proc, o *task.Options) {
					o.CrashPoint = func(point string) {
						if point == "output" {
							s.mu.Lock()
							s.hurt("cloud", "collect", "lost", time.Since(s.Began), long)
							s.mu.Unlock()
						}
					}
				}
				_, over := s.begin("t-1", spec, works(5*time.Second, sandbox.ClassOK))
				require.NoError(t, <-over)
				assert.Equal(t, want, s.now(t, "t-1").State)
			})
		})
	}
}

// shelf is a remote that records which hosts keep collected work.
type shelf struct {
	remote
	kept map[string]bool
}

func (b shelf) Collect(ctx context.Context, t task.Task, run task.Exec) (task.Collected, error) {
	found, err := b.remote.Collect(ctx, t, run)
	b.p.s.mu.Lock()
	defer b.p.s.mu.Unlock()
	b.kept[t.ID] = true
	return found, err
}

func (b shelf) Forget(t task.Task) {
	b.p.s.mu.Lock()
	defer b.p.s.mu.Unlock()
	if delete(b.kept, t.ID); !t.State.Final() {
		b.p.s.Breakf("0: what was collected of %s is forgotten, and it is %s", t.ID, t.State)
	}
}

// TestNothingIsKeptOfWhatIsOver, whatever the result and whichever process saw it.
func TestNothingIsKeptOfWhatIsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		push   bool
		fence  string
		doom   string
		deadly bool
		want   task.State
	}{
		"pushed":                                {true, "", "", false, task.Completed},
		"refused by the remote":                 {true, "stopped", "", false, task.Failed},
		"published by a command":                {false, "", "", false, task.Completed},
		"stopped before the gate":               {true, "", "before the gate", false, task.Stopped},
		"stopped when its runner had died":      {true, "", "before the gate", true, task.Stopped},
		"stopped when its publisher had died":   {true, "", "gate", true, task.Stopped},
		"stopped while its publisher is frozen": {true, "", "gate", false, task.Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, s *sim) {
				t.Helper()
				kept, collected := map[string]bool{}, false
				s.fences["t-1"] = c.fence
				s.tune = func(p *proc, o *task.Options) {
					o.Publisher = shelf{remote{p}, kept}
					o.CrashPoint = func(point string) {
						collected = collected || point == "collected"
						p.at(point)
					}
					if p.verb == "run" && c.doom != "" {
						p.doom, p.stiff, p.deadly = c.doom, time.Minute, c.deadly
					}
				}
				spec := plain()
				if spec.Publish = "make release"; c.push {
					spec.Publish, spec.Push = "", "origin=work"
				}
				_, over := s.begin("t-1", spec, works(5*time.Second, sandbox.ClassOK))
				if c.doom != "" {
					s.rest(40 * time.Second)
					s.mu.Lock()
					assert.NotEmpty(t, kept)
					s.mu.Unlock()
					require.NoError(t, errors.Join(s.stop("t-1")))
				}
				if err := <-over; !c.deadly {
					require.NoError(t, err)
				}
				assert.Equal(t, c.want, s.now(t, "t-1").State)
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.True(t, collected)
				assert.Empty(t, kept)
			})
		})
	}
}

// TestSwitches checks the behaviour with a guard switched off.
func TestSwitches(t *testing.T) {
	t.Parallel()
	t.Run("authoritative_timeout", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			spec := plain()
			spec.NoKill, spec.Limits = true, task.Limits{Command: 30 * time.Second, Attempt: time.Minute}
			_, over := s.begin("t-1", spec, works(forever, sandbox.ClassOK))
			require.ErrorIs(t, <-over, task.ErrUnverified)
			require.Len(t, s.living("t-1"), 1)
			s.rest(3 * time.Minute)
			s.sweep(t, "h1")
			assert.Equal(t, task.TimedOut, s.now(t, "t-1").State, "its provider's own limit has ended it")
		})
	})
	t.Run("db_backed_stop", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			spec := plain()
			spec.NoForeign = true
			_, over := s.begin("t-1", spec, works(20*time.Second, sandbox.ClassOK))
			s.rest(5 * time.Second)
			forbid, _ := s.stop("t-1")
			assert.Equal(t, fault.KindUnsupported, fault.KindOf(forbid))
			require.NoError(t, <-over)
			assert.Equal(t, task.Completed, s.now(t, "t-1").State)
		})
	})
	t.Run("health_probe", func(t *testing.T) {
		t.Parallel()
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			s.probes = func() (providers.Health, error) { panic("it was asked") }
			s.execs = func(providers.Command) (sandbox.Exit, error) {
				return sandbox.Exit{Class: sandbox.ClassOK}, nil
			}
			spec := plain()
			spec.KeepAlive = time.Minute
			_, over := s.begin("t-1", spec, works(time.Second, sandbox.ClassOK))
			require.NoError(t, <-over)
			again := plain()
			again.NoProbe, again.Sandbox = true, s.now(t, "t-1").Kept.Ref
			_, over = s.begin("t-2", again)
			require.NoError(t, <-over)
			assert.True(t, s.now(t, "t-2").Resumed)
		})
	})
}

// TestTheOperatorsOwnStop ends a task of this process.
func TestTheOperatorsOwnStop(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		spec := plain()
		s.tasks["t-1"] = &truth{id: "t-1", spec: spec}
		p := s.boot("run", "h1", "t-1")
		o := p.options()
		kept, _, err := o.Ledger.Add(p.ctx, task.Task{ID: "t-1", Spec: spec, State: task.Pending})
		require.NoError(t, err)
		stop := make(chan struct{})
		time.AfterFunc(5*time.Second, func() { close(stop) })
		now, err := task.NewRunner(o, nil, stop).Run(p.ctx, kept)
		require.NoError(t, err)
		assert.Equal(t, task.Stopped, now.State)
		assert.Less(t, time.Since(s.Began), 10*time.Second)
	})
}

// TestTheOperatorsOwnStopReachesTheRemote while the push is running, like that of another
// process; a publish command cannot be held back.
func TestTheOperatorsOwnStopReachesTheRemote(t *testing.T) {
	t.Parallel()
	for _, push := range []bool{true, false} {
		inWorld(t, func(t *testing.T, s *sim) {
			t.Helper()
			spec := plain()
			if spec.Push = "origin=work"; !push {
				spec.Push, spec.Publish = "", "make release"
			}
			s.hurt("remote", "push", "hangs", 0, time.Hour)
			s.hurt("remote", "command", "slow", 0, time.Hour)
			s.tasks["t-1"] = &truth{id: "t-1", spec: spec}
			s.scripts["t-1"] = []program{works(10*time.Second, sandbox.ClassOK)}
			p := s.boot("run", "h1", "t-1")
			o := p.options()
			kept, _, err := o.Ledger.Add(p.ctx, task.Task{ID: "t-1", Spec: spec, State: task.Pending})
			require.NoError(t, err)
			stop := make(chan struct{})
			o.CrashPoint = func(point string) {
				if point == "gate" {
					time.AfterFunc(time.Second, func() { close(stop) })
				}
			}
			now, err := task.NewRunner(o, nil, stop).Run(p.ctx, kept)
			require.NoError(t, err)
			if push {
				assert.Equal(t, task.Stopped, now.State)
				assert.Zero(t, s.tasks["t-1"].published)
			} else {
				assert.Equal(t, task.Completed, now.State)
				assert.Equal(t, 1, s.tasks["t-1"].published)
			}
		})
	}
}

// TestWhyAPublicationWasHeldBackIsKept: the record has the error of the push too.
func TestWhyAPublicationWasHeldBackIsKept(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		spec := plain()
		spec.Push = "origin=work"
		s.hurt("remote", "push", "lost", 0, time.Hour)
		_, over := s.begin("t-1", spec, works(time.Second, sandbox.ClassOK))
		require.NoError(t, <-over)
		now := s.now(t, "t-1")
		assert.Equal(t, task.Failed, now.State)
		assert.Equal(t, "it was stopped; before that: the remote does not answer", now.Publish.Message)
	})
}

// TestOneRunsATask: a second process gets the name of the first.
func TestOneRunsATask(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, s *sim) {
		t.Helper()
		_, over := s.begin("t-1", plain(), works(10*time.Second, sandbox.ClassOK))
		s.rest(3 * time.Second)
		p := s.boot("other", "h2", "t-1")
		_, err := task.NewRunner(p.options(), nil, nil).Run(p.ctx, s.now(t, "t-1"))
		require.ErrorIs(t, err, task.ErrNotOwner)
		assert.Equal(t, fault.KindLocked, fault.KindOf(err))
		require.NoError(t, <-over)
	})
}
