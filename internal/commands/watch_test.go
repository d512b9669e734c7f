package commands

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAWatchSaysWhatHasChanged: the time, the counts, and which sandboxes are new, gone or doing
// something else. Its interrupt is no error.
func TestAWatchSaysWhatHasChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Now: time.Now})
		p.Add(fake.Seed{Sandbox: hourOld("aaaa")}, fake.Seed{Sandbox: hourOld("bbbb")})
		b := newBench(p)
		b.now = time.Now
		b.context = haltedAfter(t, 9*time.Second)
		time.AfterFunc(3*time.Second, func() {
			for _, id := range []string{"cccc", "dddd", "eeee", "ffff"} {
				p.Add(fake.Seed{Sandbox: hourOld(id)})
			}
			assert.NoError(t, p.Terminate(t.Context(), "aaaa", providers.TerminateOptions{Delete: true}))
		})
		time.AfterFunc(5*time.Second, func() {
			p.Break(fake.Fault{Op: fake.OpList, Times: 1, Err: fault.New(fault.KindUnavailable, "503")})
		})
		r := b.run(t, "ls --watch")
		require.Equal(t, 0, r.code, r.stderr)
		var lines []string
		for line := range strings.Lines(r.stderr) {
			if strings.Contains(line, " UTC: ") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		assert.Equal(t, []string{
			"sbx: 00:00:00 UTC: 2 sandboxes: 2 running",
			"sbx: 00:00:02 UTC: 2 sandboxes: 2 running; no change since 00:00:00",
			"sbx: 00:00:04 UTC: 5 sandboxes: 5 running; 4 new: prod/cccc, prod/dddd, prod/eeee and 1 more; 1 gone: prod/aaaa",
			"sbx: 00:00:06 UTC: no sandboxes; incomplete, so changes are not shown",
			"sbx: 00:00:08 UTC: 5 sandboxes: 5 running; no change since 00:00:04",
		}, lines)
		assert.NotContains(t, r.stderr, "interrupted")
	})
}

// TestAWatchEndsWithItsTimeLimit: that the operator set one is not an interrupt.
func TestAWatchEndsWithItsTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(running("aaaa", time.Minute))
		assert.Equal(t, 124, b.run(t, "ls --watch --timeout 5s").code)
	})
}

// TestAnInterruptedLookShowsNothing: half a frame would look like sandboxes that are gone.
func TestAnInterruptedLookShowsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(running("aaaa", time.Minute))
		p.Break(fake.Fault{Op: fake.OpList, Hang: true})
		b.context = haltedAfter(t, 3*time.Second)
		r := b.run(t, "ls --watch")
		assert.Equal(t, 0, r.code)
		assert.Empty(t, r.stdout+r.stderr)
	})
}

func TestAFrameNamesWhatChanged(t *testing.T) {
	t.Parallel()
	a, b := sandbox.Ref{Provider: "prod", ID: "a"}, sandbox.Ref{Provider: "prod", ID: "b"}
	before, now := watchFrame{a: "running", b: "running"}, watchFrame{a: "running", b: "stuck"}
	assert.Equal(t, "1 changed: prod/b from running to stuck", now.changesSince(before))
	assert.Equal(t, "2 sandboxes: 1 running, 1 stuck", now.counts())
	assert.Equal(t, "1 sandbox: 1 running", watchFrame{a: "running"}.counts())
}

// TestOnlyScreensListLive: a view that a watch keeps current is for what looks again and again. What is read once, and
// what decides or ends, reads the API.
func TestOnlyScreensListLive(t *testing.T) {
	t.Parallel()
	for line, live := range map[string]bool{
		"ls --watch": true, "ls --watch --stuck": true, "top --watch": true, "dashboard --plain": true,
		"ls": false, "ls --stuck": false, "top": false, "dashboard --once": false, "stats": false, "verify": false, "diagnose": false,
		"cleanup --older-than 10m --yes": false, "terminate aaaa --yes": false, "reconcile": false, "run -- true": false,
	} {
		bubble.Run(t, line, func(t *testing.T) {
			b, p := oneFake(running("aaaa", time.Hour))
			b.context = haltedAfter(t, 9*time.Second)
			b.run(t, line)
			_, got := p.Listings()
			assert.Equal(t, live, got > 0)
		})
	}
}
