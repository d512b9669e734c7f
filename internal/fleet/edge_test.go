package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

// TestAnEdgeThatDeniesAllCondemnsNone: where all that were asked give the same answer, that nothing inside answers, no
// list shows them as stuck.
func TestAnEdgeThatDeniesAllCondemnsNone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		dead   int
		beside sandbox.Verdict // what one more said, which is not judged; "" = there is none
		silent bool            // that one does not answer a probe either
		host   bool            // no edge is in front of them
		stuck  int
	}{
		"two":                               {dead: 2, stuck: 2},
		"four":                              {dead: 4},
		"on this machine":                   {dead: 4, host: true, stuck: 4},
		"another one answers a probe":       {dead: 4, beside: sandbox.Unknown, stuck: 4},
		"another one answers nothing":       {dead: 4, beside: sandbox.Unknown, silent: true},
		"another one has answered":          {dead: 4, beside: sandbox.True, silent: true, stuck: 4},
		"two, and another has not answered": {dead: 2, beside: sandbox.False, silent: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod", PartialLogs: true})
			p.Break(fake.Fault{Op: fake.OpActivity, Err: fault.New(fault.KindUnsupported, "no reports")})
			made := time.Now().Add(-time.Hour)
			var items []sandbox.Sandbox
			for n := range tc.dead + 1 {
				id := fmt.Sprintf("many%04d", n)
				dead := n < tc.dead || tc.silent
				p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: made}, Dead: dead, Usage: func(at time.Time) sandbox.Usage {
					return sandbox.Usage{At: at, CPUPercent: new(0.1)}
				}})
				p.Break(fake.Fault{Op: fake.OpProcesses, ID: id, Err: fault.New(fault.KindUnavailable, "the port is not open").Inside()})
				s, err := p.Get(t.Context(), id)
				require.NoError(t, err)
				items = append(items, s)
			}
			how := fleet.Judging{Now: time.Now, Thresholds: func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() }, Look: true}
			if tc.beside != "" {
				how.Beside = []fleet.Answers{{Ref: items[tc.dead].Ref(), State: items[tc.dead].State, Verdict: tc.beside}}
			}
			f := fleet.New([]fleet.Member{{Provider: p, Remote: !tc.host}}, fleet.Options{Sample: time.Millisecond})
			stuck, failed := 0, 0
			for _, j := range f.Judge(t.Context(), items[:tc.dead], how) {
				if j.Verdict.Activity == sandbox.False {
					stuck++
				}
				if j.Failed != nil {
					require.ErrorContains(t, j.Failed, "its edge may be broken")
					failed++
				}
				assert.Equal(t, sandbox.False, j.Answered)
			}
			assert.Equal(t, tc.stuck, stuck)
			assert.Equal(t, tc.dead-tc.stuck, failed)
		})
	}
}
