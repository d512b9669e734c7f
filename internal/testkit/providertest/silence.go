package providertest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/triage"
)

// clockSlack is the tolerance for the difference of two clocks and rounded timestamps.
const clockSlack = 2 * time.Second

// judgeLife observes a running sandbox as every command does and returns the verdict, for a limit of
// inactivity that began at since: Activity is False where it is taken as proved that nothing has worked
// since then. Processor time is left out, since it would hide that output or commands are not seen.
func (s *Subject) judgeLife(t T, record sandbox.Sandbox, since time.Time) triage.Verdict {
	t.Helper()
	limits := triage.DefaultThresholds()
	limits.StuckAge = 1 // each sandbox is old enough to be judged
	looks := fleet.New([]fleet.Member{{Provider: s.P}}, fleet.Options{Sample: time.Millisecond})
	var observed fleet.Observation
	var asked time.Time                     // a log that was read shows no silence after that
	s.c.Eventually(s.c.Limit, func() bool { // what is new may have no figures yet
		asked = time.Now()
		observed = looks.ObserveLife(s.callContext(t), record)
		return observed.FailedErr() == nil
	})
	require.NoError(t, observed.FailedErr())
	limits.Inactivity = asked.Sub(since)
	signs := observed.Signals(limits)
	signs.Trend = nil
	return triage.Judge(observed.Sandbox, signs, limits, time.Now())
}

// checkSilenceOfWriter checks that a program that writes does not count as silent.
func checkSilenceOfWriter(t T, s *Subject) {
	began := time.Now()
	id := s.startWriter(t, "one", "two")
	var got triage.Verdict
	assert.True(t, s.c.Eventually(s.c.Limit, func() bool {
		record, err := s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		got = s.judgeLife(t, record, began.Add(-clockSlack))
		return got.Activity != sandbox.False
	}), "it wrote a moment ago, and is judged %s", got.Signs)
}

// checkSilenceOfSteadyWriter checks that a program that goes on writing is never judged silent, even
// if no client has called its sandbox for a day. step is the shell command of one step.
func checkSilenceOfSteadyWriter(step string) func(t T, s *Subject) {
	return func(t T, s *Subject) {
		if !hasAbility(s.P, "create") {
			t.Skipf("%s cannot create", s.P.Type())
		}
		reader := requireAbility[providers.LogReader](t, s)
		id := s.startSandbox(t, sandbox.Spec{Command: []string{"sh", "-c", strings.Repeat(step+"; sleep 0.1; ", 600) + "sleep 600"}})
		written := 0
		for range 2 {
			record, err := s.P.Get(s.callContext(t), id)
			require.NoError(t, err)
			began := time.Now()
			require.True(t, !reader.CapturesOutput(record) || s.c.Eventually(s.c.Limit, func() bool {
				before := written
				written = s.logBytes(t, reader, id)
				return written > before
			}), "what the program writes does not arrive in its log")
			if !record.ActivityBasis.ProvesSilence() {
				record.LastActivityAt = record.LastActivityAt.Add(-24 * time.Hour)
			}
			got := s.judgeLife(t, record, began.Add(-clockSlack))
			assert.NotEqual(t, sandbox.False, got.Activity, "it writes all the time, and is judged %s", got.Signs)
		}
	}
}

// silenceSlack is what a whole second of two clocks may hide of a silence.
const silenceSlack = 3 * time.Second

// checkSilenceAfterOutput checks that a program that has written and writes no more counts as silent, where the log has
// all output, and as unknown elsewhere: to have written once is no sign of work for ever.
func checkSilenceAfterOutput(t T, s *Subject) {
	reader, began := requireAbility[providers.LogReader](t, s), time.Now()
	id := s.startWriter(t, "one", "two")
	since := time.Now().Add(silenceSlack)
	proved := s.c.Eventually(s.c.Limit, func() bool {
		record, err := s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		if !time.Now().After(since) {
			return false
		}
		got := s.judgeLife(t, record, since)
		if reader.CapturesOutput(record) {
			return got.Activity == sandbox.False
		}
		require.NotEqual(t, sandbox.False, got.Activity, "its log does not have all output, and it is judged %s", got.Signs)
		return true
	})
	assert.True(t, proved, "it wrote %s ago, and is not judged silent", time.Since(began))
}

// logBytes is the length of a log.
func (s *Subject) logBytes(t T, reader providers.LogReader, id string) (size int) {
	t.Helper()
	lines, err := readLogs(s.callContext(t), reader, id, providers.LogQuery{})
	require.NoError(t, err)
	for _, l := range lines {
		size += len(l.Text)
	}
	return size
}

// checkSilenceOfCommand checks that a sandbox with a command of another client does not count as
// silent.
func checkSilenceOfCommand(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{Command: []string{"sleep", "600"}})
	began := time.Now()
	ctx, cancel := context.WithCancel(s.callContext(t))
	wrote := &firstWrite{came: make(chan struct{})}
	var over sync.WaitGroup
	defer s.returnsInTime(over.Wait) // another check finds a command that ignores ctx
	defer cancel()
	over.Go(func() {
		_, err := requireAbility[providers.Commander](t, s).Exec(ctx, id, providers.Command{
			Args: []string{"sh", "-c", "echo tick; sleep 600"}, Stdout: wrote,
		})
		if ctx.Err() == nil {
			t.Errorf("the command ended by itself: %v (%s)", err, fault.KindOf(err))
		}
	})
	select {
	case <-wrote.came:
	case <-ctx.Done():
		assert.Fail(t, "what the command writes does not arrive")
		return
	}
	record, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	got := s.judgeLife(t, record, began.Add(1)) // after its creation also where no time has passed
	assert.NotEqual(t, sandbox.False, got.Activity, "a command runs and wrote a moment ago, and the sandbox is judged %s", got.Signs)
}

// looks is how often a sandbox is observed that must not change by that.
const looks = 10

// checkLooksAreNoWork checks that what sbx does in an idle sandbox does not count as its work.
func checkLooksAreNoWork(t T, s *Subject) {
	ids := []string{s.startSandbox(t, sandbox.Spec{Command: []string{"sleep", "600"}})}
	if s.c.Foreign != nil {
		ids = append(ids, s.c.Foreign(t, s.P))
	}
	for _, id := range ids {
		s.lookAgain(t, id)
	}
}

// lookAgain checks that looks at an idle sandbox do not change its verdict.
func (s *Subject) lookAgain(t T, id string) {
	t.Helper()
	record, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	began := time.Now().Add(1) // after its creation also where no time has passed
	first := s.judgeLife(t, record, began)
	n := looks
	if !s.c.Simulated && !tiertest.IsLong("ten looks at an idle sandbox of each API; else two, of which the second sees the first") {
		n = 2
	}
	for range n - 1 {
		record, err = s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		got := s.judgeLife(t, record, began)
		assert.NotEqual(t, sandbox.True, got.Activity, "nobody but sbx has been in it, and it is judged active: %s", got.Reason)
		assert.Equal(t, first.Activity, got.Activity, "a look changed the verdict: %s", got.Reason)
		assert.Equal(t, first.Stuck, got.Stuck, "a look changed the verdict: %s", got.Reason)
	}
}

// checkFinished checks that a sandbox whose program has ended, and in which nothing else runs, counts
// as finished and not as active.
func checkFinished(t T, s *Subject) {
	id := s.startLingering(t)
	s.awaitExit(t, id)
	began := time.Now().Add(silenceSlack) // after its last line, also where its time is known to a second
	var got triage.Verdict
	assert.True(t, s.c.Eventually(s.c.Limit, func() bool {
		record, err := s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		if !time.Now().After(began) {
			return false
		}
		got = s.judgeLife(t, record, began)
		return got.Activity != sandbox.True && slices.Contains(got.Reasons, triage.ReasonFinished)
	}), "its program has ended, and it is judged %s", got.Reason)
}

type firstWrite struct {
	came chan struct{}
	once sync.Once
}

// Write implements io.Writer.
func (w *firstWrite) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.came) })
	return len(b), nil
}
