package commands

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/testkit/fake"
)

func TestLsListsWhatMatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want string // ids
		code int
	}{
		"all":             {"ls -o name", "aaaa bbbb", 0},
		"alias":           {"list -o name", "aaaa bbbb", 0},
		"older":           {"ls --older-than 10m -o name", "bbbb", 0},
		"exactly is not":  {"ls --older-than 20m -o name", "", 0},
		"sorted":          {"ls --sort -age -o name", "bbbb aaaa", 0},
		"limit":           {"ls --sort age --limit 1 -o name", "aaaa", 0},
		"state":           {"ls --state paused -o name", "", 0},
		"provider":        {"ls --provider prod -o name", "aaaa bbbb", 0},
		"no such profile": {"ls --provider nope -o name", "", 2},
		"empty variable":  {"ls --older-than= -o name", "", 2},
		"bare number":     {"ls --older-than 10 -o name", "", 2},
		"negative":        {"ls --older-than=-5m -o name", "", 2},
		"unknown state":   {"ls --state runnig -o name", "", 2},
		"unknown column":  {"ls --columns reff", "", 2},
		"unknown format":  {"ls -o jsn", "", 2},
		"an argument":     {"ls aaaa", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := oneFake(running("aaaa", time.Minute), running("bbbb", 20*time.Minute))
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, r.stderr)
			var want strings.Builder
			for id := range strings.FieldsSeq(tc.want) {
				want.WriteString("prod/" + id + "\n")
			}
			assert.Equal(t, want.String(), r.stdout)
		})
	}
}

// TestLsLimitIsTheNewest: the same rows each time, of all providers together, in whatever order they arrive.
func TestLsLimitIsTheNewest(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("old1", 20*time.Minute), running("new1", time.Minute), running("new2", 2*time.Minute))
	r := b.run(t, "ls --limit 2 -o json")
	items := r.list(t, "items")
	require.Len(t, items, 2)
	assert.Equal(t, []any{"prod/new1", "prod/new2"}, []any{items[0]["ref"], items[1]["ref"]})
	assert.Equal(t, true, r.object(t)["truncated"])
}

func TestLsShowsOneFailedProviderBesideTheOthers(t *testing.T) {
	t.Parallel()
	good, bad := fake.New(fake.Options{Name: "good"}), fake.New(fake.Options{Name: "bad"})
	good.Add(running("aaaa", time.Minute))
	bad.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
	r := newBench(good, bad).run(t, "ls -o json")
	assert.Equal(t, 3, r.code)
	assert.Len(t, r.list(t, "items"), 1)
	require.Len(t, r.list(t, "errors"), 1)
	assert.Equal(t, "bad", r.list(t, "errors")[0]["provider"])
	assert.Equal(t, false, r.object(t)["complete"])
}

func TestLsSaysNullWhereNothingIsKnown(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	item := b.run(t, "ls -o json").list(t, "items")[0]
	assert.InEpsilon(t, 60.0, item["age_seconds"], 0.001)
	assert.Nil(t, item["exit_code"])
}

func TestLsEmptyTeaches(t *testing.T) {
	t.Parallel()
	b, _ := oneFake()
	r := b.run(t, "ls")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "no sandboxes")
	assert.Empty(t, b.run(t, "ls -q").stderr)
	assert.Contains(t, b.run(t, "ls --stuck").stderr, "no sandbox matches")
}

// TestAClosedStdoutEndsTheListing: whoever reads `sbx ls | head -1` does not wait for all
// pages, and providers are not asked for them.
func TestAClosedStdoutEndsTheListing(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon, PageSize: 10})
	for i := range 5000 {
		p.Add(running(fmt.Sprintf("id%06d", i), time.Minute))
	}
	b := newBench(p)
	b.adjust = printTo(closedPipe{})
	r := b.run(t, "ls")
	require.ErrorIs(t, r.err, output.ErrClosed)
	assert.Empty(t, r.stderr)
	assert.Less(t, len(p.Calls(fake.OpList)), 250, "half of the pages")
}
