package task_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// TestASweepRemovesTheBranchOfADeadRunner: at once where its remote answers. A remote that is slow or does not answer
// gets a process of its own, delays no sweep, and the task is over only when the branch is removed.
func TestASweepRemovesTheBranchOfADeadRunner(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm   string // of the remote, for ten minutes from the death of the runner; "" = it answers
		handed bool
	}{"answers": {"", false}, "is away": {"away", true}, "does not answer": {"hangs", true}} {
		for _, point := range []string{"branch noted", "branch made"} {
			t.Run(name+" "+point, func(t *testing.T) {
				t.Parallel()
				inWorld(t, func(t *testing.T, s *sim) {
					t.Helper()
					const away = 10 * time.Minute
					s.tune = func(p *proc, _ *task.Options) {
						if p.verb == "run" {
							p.doom, p.deadly = point, true
						}
					}
					spec := plain()
					spec.Push, spec.NewBranch = "origin=work", true
					_, over := s.begin("t-1", spec, works(5*time.Second, sandbox.ClassOK))
					require.Error(t, <-over)
					if tc.harm != "" {
						s.mu.Lock()
						s.hurt("remote", "", tc.harm, time.Since(s.Began), away)
						s.mu.Unlock()
					}
					died := time.Now()
					for n := 0; !s.now(t, "t-1").State.Final(); n++ {
						require.Less(t, n, 600, "it is never over")
						began := time.Now()
						s.sweep(t, "h1")
						require.LessOrEqual(t, time.Since(began), 5*time.Second, "a sweep waits for no remote")
						s.rest(10 * time.Second)
					}
					assert.Equal(t, tc.harm != "", time.Since(died) >= away, "it is over when its remote has answered: %s", time.Since(died))
					s.mu.Lock()
					defer s.mu.Unlock()
					want, handed := map[string]string{"branch noted": "forbidden", "branch made": "removed"}[point], 0
					assert.Equal(t, want, s.branches["t-1"])
					for _, p := range s.procs {
						if p.verb == "continue" {
							handed++
						}
					}
					assert.Equal(t, tc.handed, handed > 0, "%d processes went on with it", handed)
				})
			})
		}
	}
}
