package cleanup_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// hostLog is a scene like E2B: the log holds what the host of the program did, never its
// output, and no control plane reports activity.
func hostLog(change ...func(*fake.Seed)) *scene {
	s := oneOld(fake.Options{PartialLogs: true}, change...)
	s.p.Break(fake.Fault{Op: fake.OpActivity, Err: fault.New(fault.KindUnsupported, "no reports")})
	return s
}

func use(percent float64) func(*fake.Seed) {
	return func(seed *fake.Seed) {
		seed.Usage = func(at time.Time) sandbox.Usage {
			return sandbox.Usage{At: at, CPUPercent: &percent, Source: "metrics"}
		}
	}
}

// TestALogWithoutOutputCondemnsNothing: a program's output never appears in such a log, so
// an hour of silence in it means nothing.
func TestALogWithoutOutputCondemnsNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		scene func() *scene
		want  cleanup.KeepReason
	}{
		"an old log":                   {func() *scene { return hostLog() }, cleanup.KeepActivityUnknown},
		"an empty log":                 {func() *scene { return hostLog(func(s *fake.Seed) { s.Logs = nil }) }, cleanup.KeepActivityUnknown},
		"a processor at its limit":     {func() *scene { return hostLog(use(100)) }, cleanup.KeepNone},
		"a processor at work":          {func() *scene { return hostLog(use(30)) }, cleanup.KeepAlive},
		"age alone, by the profile":    {func() *scene { return hostLog().ageOnly() }, cleanup.KeepNone},
		"the same with the stuck rule": {func() *scene { s := hostLog(); s.rule = cleanup.Rule{}; s.rule.Selector.Stuck = true; return s }, cleanup.KeepActivityUnknown},
		"by the operator's word":       {func() *scene { s := hostLog(); s.rule.IgnoreActivity = true; return s }, cleanup.KeepNone},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.scene().ground(t))
		})
	}
}

func TestWhatCouldNotBeJudgedIsCountedAndExplained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		survey := hostLog().look(t)
		assert.Equal(t, 1, survey.Unjudged())
		require.Len(t, survey.Kept, 1)
		assert.Contains(t, survey.Kept[0].Reason, "processes 1")
		assert.Contains(t, survey.Kept[0].Reason, "perhaps it waits")
		assert.NoError(t, survey.Verdict(nil))
	})
}

// TestASourceThatFailsKeeps: a sandbox that a failed source may have shown to be active
// stays, and the failure is an error of the run.
func TestASourceThatFailsKeeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		require.Equal(t, cleanup.KeepNone, s.ground(t), "it goes while its source answers")
		s.p.Break(fake.Fault{Op: fake.OpActivity, Err: fault.New(fault.KindUnavailable, "500")})
		survey := s.look(t)
		require.Empty(t, survey.Selected)
		assert.Equal(t, cleanup.KeepActivityUnknown, survey.Kept[0].KeepReason)
		assert.Contains(t, survey.Kept[0].Reason, "does not answer")
		require.Len(t, survey.Errs(), 1)
		err := survey.Verdict(nil)
		assert.Equal(t, fault.KindPartial, fault.KindOf(err))
		require.ErrorContains(t, err, "1 sandbox was not judged")
		assert.Equal(t, fault.KindPartial, fault.KindOf(survey.Verdict([]sandbox.Ending{{Outcome: sandbox.OutcomeFailed, Err: errors.New("x")}})))
		s.rule.IgnoreActivity = true
		assert.Equal(t, cleanup.KeepNone, s.ground(t))
	})
}

// TestLooksThatFailAreNoJudgement: a sandbox whose every observation fails stays, also
// where the profile judges by age alone; and the run does not count as a success.
func TestLooksThatFailAreNoJudgement(t *testing.T) {
	t.Parallel()
	for _, ageOnly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := hostLog()
			if ageOnly {
				s = s.ageOnly()
			}
			for _, op := range []fake.Op{fake.OpUsage, fake.OpHistory, fake.OpLogs, fake.OpProcesses, fake.OpProbe} {
				s.p.Break(fake.Fault{Op: op, Err: fault.New(fault.KindUnavailable, "503")})
			}
			survey := s.look(t)
			require.Empty(t, survey.Selected)
			require.Len(t, survey.Errs(), 1)
			require.ErrorContains(t, survey.Errs()[0], "1 sandbox was not judged")
			assert.Equal(t, fault.KindPartial, fault.KindOf(survey.Verdict(nil)))
			assert.Empty(t, survey.Succeeded(nil))
		})
	}
}

// TestTheEdgeIsSuspectedWhereAllAreDead: three or more of a profile that all give the same answer may be at work behind a
// broken edge. One that answers clears it, also one that no rule selects; what is proved otherwise goes all the same.
func TestTheEdgeIsSuspectedWhereAllAreDead(t *testing.T) {
	t.Parallel()
	silent := func(s *fake.Seed) { s.Logs = nil }
	for name, tc := range map[string]struct {
		dead, alive int
		young       bool // those alive, which no rule selects
		stuck       bool // the stuck rule, else --unhealthy
		proved      bool // by its log, too
		host        bool // no edge is in front of them
		want        int
	}{
		"four of four":                    {dead: 4},
		"two of two":                      {dead: 2, want: 2},
		"three, and one answers":          {dead: 3, alive: 1, want: 3},
		"three, and a young one answers":  {dead: 3, alive: 1, young: true, want: 3},
		"four of four are stuck":          {dead: 4, stuck: true},
		"four stuck, and another answers": {dead: 4, alive: 1, young: true, stuck: true, want: 4},
		"silent by their logs, too":       {dead: 4, stuck: true, proved: true, want: 4},
		"on this machine":                 {dead: 4, host: true, want: 4},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{PartialLogs: !tc.proved})
			s.p.Break(fake.Fault{Op: fake.OpActivity, Err: fault.New(fault.KindUnsupported, "no reports")})
			require.NoError(t, s.p.Terminate(t.Context(), "box1", terminate()))
			now := time.Now()
			for n := range tc.dead + tc.alive {
				seed := fake.Seed{Sandbox: sandbox.Sandbox{ID: fmt.Sprintf("many%04d", n), CreatedAt: now.Add(-time.Hour)}, Usage: func(at time.Time) sandbox.Usage {
					return sandbox.Usage{At: at, CPUPercent: new(0.1)}
				}}
				if silent(&seed); n < tc.dead {
					seed.Dead = true
				} else if tc.young {
					seed.Sandbox.CreatedAt = now.Add(-time.Minute)
				}
				s.p.Add(seed)
				if seed.Dead && !tc.proved {
					inside := fault.New(fault.KindUnavailable, "the port is not open").Inside()
					s.p.Break(fake.Fault{Op: fake.OpProcesses, ID: seed.Sandbox.ID, Err: inside})
				}
			}
			s.fleet = fleet.New([]fleet.Member{{Provider: s.p, Remote: !tc.host}}, fleet.Options{})
			s.rule = cleanup.Rule{Unhealthy: true, Selector: selector.Selector{OlderThan: 10 * time.Minute}}
			if tc.stuck {
				s.rule = cleanup.Rule{Selector: selector.Selector{Stuck: true}}
			}
			survey := s.look(t)
			assert.Len(t, survey.Selected, tc.want)
			if tc.want == 0 {
				require.ErrorContains(t, survey.Verdict(nil), "its edge may be broken")
				assert.Equal(t, fault.KindPartial, fault.KindOf(survey.Verdict(nil)))
				assert.Empty(t, survey.Succeeded(nil))
			}
		})
	}
}

// TestTheClockIsJudgedBeforeTheRule: a rule that selects nothing by a wrong clock has not seen what is old. It says so, and
// the run is no success of its layer.
func TestTheClockIsJudgedBeforeTheRule(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		skew    time.Duration
		created time.Duration // ago
		want    fault.Kind
	}{
		"right, and young":   {0, time.Minute, fault.KindNone},
		"a little off":       {-time.Minute, time.Minute, fault.KindNone},
		"three hours behind": {-3 * time.Hour, time.Hour, fault.KindRefused},
		"three hours ahead":  {3 * time.Hour, time.Minute, fault.KindRefused},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{Skew: tc.skew}, func(seed *fake.Seed) {
				seed.Sandbox.CreatedAt = time.Now().Add(-tc.created)
				seed.Sandbox.LastActivityAt = time.Time{}
			})
			survey := s.look(t)
			require.Empty(t, survey.Selected)
			assert.Equal(t, tc.want, fault.KindOf(survey.Verdict(nil)), "%v", survey.Verdict(nil))
			assert.Equal(t, tc.want == fault.KindNone, len(survey.Succeeded(nil)) == 1)
			if tc.want != fault.KindNone {
				require.ErrorContains(t, survey.Errs()[0], "no age can be trusted")
			}
		})
	}
}
