package commands

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// goneFrom is a provider that has forgotten its sandboxes, but for their logs.
type goneFrom struct{ *fake.Provider }

func (goneFrom) Get(context.Context, string) (sandbox.Sandbox, error) {
	return sandbox.Sandbox{}, fault.New(fault.KindNotFound, "404")
}

func (goneFrom) List(context.Context, providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(func(sandbox.Sandbox, error) bool) {}
}

// keeper says of itself that its logs outlive their sandboxes.
type keeper struct{ goneFrom }

func (keeper) KeepsLogs() bool { return true }

// TestLogsOfWhatIsGone: where the provider still has them they are shown, and what has
// none stays not found.
func TestLogsOfWhatIsGone(t *testing.T) {
	t.Parallel()
	b, p := oneFake(written("aaaa", "its last words"))
	b.members = []providers.Provider{goneFrom{p}}
	assert.Equal(t, 5, b.run(t, "logs prod/aaaa").code, "this one keeps none")
	b.members = []providers.Provider{keeper{goneFrom{p}}}
	r := b.run(t, "logs prod/aaaa")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "its last words\n", r.stdout)
	assert.Equal(t, 5, b.run(t, "logs prod/never").code)
}

// TestWhatNeedsDeleteSaysSo: it keeps the provider's hint, and is nothing to repeat.
func TestWhatNeedsDeleteSaysSo(t *testing.T) {
	t.Parallel()
	b, p := endBench(t, 1)
	p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindRefused, "needs_delete: it is paused").WithHint("--delete destroys its snapshot too")})
	r := b.run(t, "terminate prod/aaaa -o json")
	assert.Equal(t, 3, r.code)
	e := r.list(t, "errors")[0]
	assert.Equal(t, "partial", e["kind"])
	assert.Equal(t, false, e["retryable"])
	assert.Equal(t, "--delete destroys its snapshot too", e["hint"])
}

// TestALimitShowsTheNewestOfAllPages: the first page of an API that lists the oldest first has none of them.
func TestALimitShowsTheNewestOfAllPages(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon, PageSize: 10})
	for i := range 130 {
		p.Add(running("box-"+strconv.Itoa(i), time.Duration(200-i)*time.Minute))
	}
	b := newBench(p)
	r := b.run(t, "ls --limit 5 -o json")
	require.Equal(t, 0, r.code, r.stderr)
	require.Len(t, r.list(t, "items"), 5)
	assert.Equal(t, "box-129", r.list(t, "items")[0]["id"])
	assert.Equal(t, true, r.object(t)["truncated"])
	assert.Equal(t, true, r.object(t)["complete"])

	all := b.run(t, "ls --limit 130 -o json")
	assert.Equal(t, false, all.object(t)["truncated"], "there are no more")
	sorted := b.run(t, "ls --limit 1 --sort -id -o json")
	assert.Equal(t, "box-99", sorted.list(t, "items")[0]["id"], "an order needs them all")
}

// TestAFailedCreateIsLookedUp: what a 503 has made is found, and where it has made nothing
// the error does not say that it may have.
func TestAFailedCreateIsLookedUp(t *testing.T) {
	t.Parallel()
	open := fault.New(fault.KindUnavailable, "%w", &providers.OpenCreateError{
		Err: errors.New("503 service unavailable"), Mark: providers.CreateMark{Provider: "cloud", Nonce: "n-1"},
	})
	run := func(faults ...fake.Fault) result {
		p := fake.New(fake.Options{Name: "cloud", Now: atNoon})
		p.Break(faults...)
		b := newBench(p)
		b.home, b.env, b.types = t.TempDir(), []string{"CLOUD_KEY=k"}, []providers.Type{{Name: "cloud", SwitchedOn: []string{"CLOUD_KEY"}}}
		return b.run(t, "create --provider cloud --label sbx/nonce=n-1 -- sleep 600")
	}
	nothing := run(fake.Fault{Op: fake.OpCreate, Err: open})
	assert.Equal(t, 7, nothing.code, nothing.stderr)
	assert.Contains(t, nothing.stderr, "503 service unavailable; a listing right afterwards shows no new sandbox")
	assert.NotContains(t, nothing.stderr, "may have been created")

	made := run(fake.Fault{Op: fake.OpCreate, Err: open, Late: true})
	assert.Equal(t, 7, made.code, made.stderr)
	assert.Contains(t, made.stderr, "the sandbox was created nevertheless: cloud/")
	assert.Contains(t, made.stderr, "`sbx terminate cloud/")

	blind := run(fake.Fault{Op: fake.OpCreate, Err: open}, fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
	assert.Contains(t, blind.stderr, "it may have been created anyway", "could not check whether")
}
