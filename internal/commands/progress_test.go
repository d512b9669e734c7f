package commands

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// slowVerbs are command lines that wait for a provider.
func slowVerbs() []string {
	return []string{
		"ls", "ls --stuck", "top", "stats --look", "inspect slow/aaaa", "cleanup --stuck", "terminate slow/aaaa --yes",
		"reconcile", "wait slow/aaaa --for ended --timeout 10s", "logs slow/aaaa",
	}
}

// TestEveryVerbShowsWhichProviderIsAwaited on a terminal, and leaves nothing of that line; elsewhere rarely.
func TestEveryVerbShowsWhichProviderIsAwaited(t *testing.T) {
	t.Parallel()
	for _, line := range slowVerbs() {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			for _, tty := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					slow, quick := fake.New(fake.Options{Name: "slow", Now: time.Now}), fake.New(fake.Options{Name: "quick", Now: time.Now})
					for i := range 3 {
						slow.Add(fake.Seed{Sandbox: hourOld(strings.Repeat(string(rune('a'+i)), 4))})
						quick.Add(fake.Seed{Sandbox: hourOld(strings.Repeat(string(rune('k'+i)), 4))})
					}
					for _, op := range []fake.Op{fake.OpList, fake.OpGet, fake.OpLogs} {
						slow.Break(fake.Fault{Op: op, Delay: 4 * time.Second})
					}
					b := newBench(slow, quick)
					b.tty, b.width, b.now = tty, 100, time.Now
					r := b.run(t, line)
					if !tty {
						assert.NotContains(t, r.stderr, "\r")
						assert.LessOrEqual(t, strings.Count(r.stderr, "waiting for "), 1, "it takes no 15 s")
						return
					}
					require.Contains(t, r.stderr, "waiting for slow; ", r.stdout)
					last := r.stderr[strings.LastIndex(r.stderr, "waiting for "):]
					assert.Contains(t, last, "s\r\x1b[K", "the line is removed")
				})
			}
		})
	}
}

func hourOld(id string) sandbox.Sandbox {
	at := time.Now().Add(-time.Hour)
	return sandbox.Sandbox{ID: id, CreatedAt: at, StartedAt: at, TaskID: "t-" + id}
}
