package commands

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// silentFleet has 20 sandboxes that answer in the profile `quick`, and 60 in `slow` that accept each
// request and never answer.
func silentFleet() (b *bench, slow *fake.Provider) {
	quick, slow := fake.New(fake.Options{Name: "quick", Now: time.Now}), fake.New(fake.Options{Name: "slow", Now: time.Now})
	for i := range 20 {
		quick.Add(fake.Seed{Sandbox: hourOld(fmt.Sprintf("quick%03d", i))})
	}
	for i := range 60 {
		slow.Add(fake.Seed{Sandbox: hourOld(fmt.Sprintf("slow%04d", i))})
	}
	for _, op := range askedOfOne() {
		slow.Break(fake.Fault{Op: op, Hang: true})
	}
	b = newBench(quick, slow)
	b.now = time.Now
	return b, slow
}

// askedOfOne are the operations that ask about one sandbox.
func askedOfOne() []fake.Op {
	return []fake.Op{fake.OpGet, fake.OpUsage, fake.OpHistory, fake.OpLogs, fake.OpProcesses, fake.OpProbe, fake.OpExit, fake.OpEvents}
}

// looksAtAll are command lines that look at many sandboxes.
func looksAtAll() []string {
	return []string{"ls --look", "stats --look", "diagnose", "cleanup --stuck --unowned", "cleanup --unhealthy --unowned", "runbook run sandbox-stuck --dry-run"}
}

// TestALookAtManySaysHowFarItIs also in a pipe: from 5 s on, a line every ten seconds. What hangs is
// asked once.
func TestALookAtManySaysHowFarItIs(t *testing.T) {
	t.Parallel()
	for _, line := range looksAtAll() {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			for _, tc := range []struct {
				tty   bool
				flags string
			}{{false, ""}, {true, ""}, {false, " -o json"}, {false, " -q"}} {
				synctest.Test(t, func(t *testing.T) {
					b, slow := silentFleet()
					b.tty, b.width = tc.tty, 120
					began := time.Now()
					r := b.run(t, line+tc.flags)
					took := time.Since(began)
					require.Greater(t, took, 10*time.Second)
					if !strings.HasPrefix(line, "runbook") { // it looks several times
						assert.LessOrEqual(t, len(slow.Calls(askedOfOne()...)), 2*60+5, "its usage and its log, each once, and a few of the profile")
					}
					if strings.Contains(tc.flags, "-q") {
						assert.NotContains(t, r.stderr, "looked at")
						return
					}
					assert.Contains(t, r.stderr, ", slow: 60 wait for an answer", "%s", r.stdout)
					assert.NotContains(t, r.stderr, "slow: 60 wait for an answer; waiting for slow", "it says it once")
					if tc.tty {
						return
					}
					lines := strings.Count(r.stderr, " wait for an answer")
					assert.LessOrEqual(t, lines, 1+int(took/(10*time.Second)), "rarely")
					first, _, _ := strings.Cut(r.stderr, "s\n")
					after, err := strconv.Atoi(first[strings.LastIndex(first, " ")+1:])
					require.NoError(t, err, first)
					assert.LessOrEqual(t, after, 5, "no longer silence")
				})
			}
		})
	}
}

// TestALookThatReachesItsLimitKeepsWhatItHas: it says what was not looked at, and no provider is dropped.
func TestALookThatReachesItsLimitKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	for _, line := range looksAtAll() {
		bubble.Run(t, line, func(t *testing.T) {
			b, _ := silentFleet()
			b.context = func(ctx context.Context) context.Context {
				limit := 10 * time.Second
				ctx, stop := context.WithTimeoutCause(ctx, limit, fault.New(fault.KindTimeout, "no result within %s", limit))
				t.Cleanup(stop)
				return ctx
			}
			r := b.run(t, line+" -o json")
			assert.Contains(t, r.stdout+r.stderr, "not looked at: 60 of slow")
			assert.NotContains(t, r.stdout, "no answer within")
			switch {
			case strings.HasPrefix(line, "ls"):
				doc := r.object(t)
				assert.Len(t, doc["items"], 80)
				assert.InDelta(t, 60, doc["unjudged"], 0, "the others have their verdict")
			case strings.HasPrefix(line, "stats"), line == "diagnose":
				assert.Contains(t, r.stdout, `quick`)
				assert.Contains(t, r.stdout, `slow`)
			}
			if line == "diagnose" {
				for _, s := range diagnosed(t, r).Steps {
					known := 0
					for _, a := range s.Answers {
						if a.Known {
							known++
						}
					}
					assert.True(t, known > 0 || s.ID == "cleanup", "%s: %v", s.ID, s.Answers)
				}
			}
		})
	}
}
