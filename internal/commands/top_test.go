package commands

import (
	"context"
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

// TestTopOfAFrozenOne shows it with unknown figures, and says why.
func TestTopOfAFrozenOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(calm(), running("froz0001", time.Hour))
		p.Break(fake.Fault{Op: fake.OpUsage, ID: "froz0001", Hang: true})
		r := b.run(t, "top prod/froz0001 -o json")
		assert.Equal(t, 7, r.code, r.stderr)
		rows := r.list(t, "items")
		require.Len(t, rows, 1)
		assert.Nil(t, rows[0]["cpu_percent"])
		assert.Equal(t, "unknown", rows[0]["stuck"])
		assert.Contains(t, r.stdout, "no answer within 20s")
		all := b.run(t, "top")
		assert.Equal(t, 3, all.code)
		assert.Contains(t, all.stdout, "prod/froz0001")
		assert.Contains(t, all.stderr, "froz0001: no answer within 20s")
	})
}

func TestTopExits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want string // ids, in order; only with -o name
		code int
		says string
	}{
		"all that run, busiest first": {"top -o name", "loop0001 calm0001", 0, ""},
		"alias":                       {"resources -o name", "loop0001 calm0001", 0, ""},
		"one":                         {"top prod/calm0001 -o name", "calm0001", 0, ""},
		"by prefix":                   {"top calm -o name", "calm0001", 0, ""},
		"an ended one, by name":       {"top prod/oomd0001 -o name", "oomd0001", 0, ""},
		"one sample":                  {"top --samples 1 -o name", "loop0001 calm0001", 0, ""},
		"sorted by name":              {"top --sort name -o name", "calm0001 loop0001", 0, ""},
		"sorted the other way":        {"top --sort -cpu -o name", "calm0001 loop0001", 0, ""},
		"limited":                     {"top --limit 1 -o name", "loop0001", 0, ""},
		"no limit":                    {"top --limit 0", "", 2, "--limit: 0"},
		"empty sort":                  {"top --sort=", "", 2, "--sort"},
		"no such key":                 {"top --sort memroy", "", 2, "did you mean memory"},
		"long":                        {"top --samples 5 --interval 2m -o name", "loop0001 calm0001", 0, ""},
		"unknown":                     {"top prod/nope0001 -o name", "", 5, "no such sandbox"},
		"one of two is unknown":       {"top nope0001 calm0001 -o name", "calm0001", 3, "no sandbox matches"},
		"ambiguous":                   {"top twin calm0001 -o name", "", 2, "matches 2 sandboxes"},
		"no samples":                  {"top --samples 0", "", 2, "--samples"},
		"fewer than none":             {"top --samples=-1", "", 2, "--samples"},
		"too many samples":            {"top --samples 1001", "", 2, "between 1 and 1000"},
		"bare interval":               {"top --interval 2", "", 2, "--interval"},
		"no interval":                 {"top --interval=", "", 2, "--interval"},
		"unknown column":              {"top --columns cpu", "", 2, "columns"},
		"no check":                    {"top -o nagios", "", 2, "nagios"},
		"a watch is no document":      {"top --watch -o json", "", 2, "--watch"},
		"unknown profile":             {"top --provider nope", "", 2, "nope"},
		"nothing on stdin":            {"top -", "", 2, "no reference was given"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(calm(), loop(), oomed())
			p.Add(inState("twin0001", time.Minute, sandbox.StatePaused), inState("twin0002", time.Minute, sandbox.StatePaused))
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, r.stderr)
			assert.Contains(t, r.stderr, tc.says)
			var want strings.Builder
			for id := range strings.FieldsSeq(tc.want) {
				want.WriteString("prod/" + id + "\n")
			}
			assert.Equal(t, want.String(), r.stdout)
		})
	}
}

func TestTopItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(using("leak0001", time.Minute, growing(0.2, 30, 10)), using("loop0001", time.Minute, growing(1, 0, 90_000)), running("mute0001", time.Minute))
		r := b.run(t, "top -o json")
		require.Equal(t, 0, r.code, r.stdout)
		items := r.list(t, "items")
		require.Len(t, items, 3)
		words := func(i int) []any { return []any{items[i]["ref"], items[i]["pattern"], items[i]["likely_cause"]} }
		assert.Equal(t, []any{"prod/leak0001", "leak", "leak"}, words(0), "a problem comes first")
		assert.Equal(t, []any{"prod/loop0001", "busy", ""}, words(1))
		assert.Equal(t, []any{"prod/mute0001", "unknown", ""}, words(2))
		assert.InEpsilon(t, 100.0, items[1]["cpu_percent"], 0.01)
		assert.InEpsilon(t, 180_000.0, items[1]["operations"], 0.01)
		assert.InEpsilon(t, 1800.0, items[0]["memory_slope_mb_per_min"], 0.01)
		assert.InEpsilon(t, 256.0, items[0]["memory_limit_mb"], 0.01)
		assert.Nil(t, items[2]["cpu_percent"], "one instant tells no rate")
		assert.Nil(t, items[2]["operations"])
	})
}

func TestTopSamplesAsOftenAsAsked(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		calls int
		took  time.Duration
	}{
		"top":                             {2, time.Second},
		"top --samples 1":                 {1, 0},
		"top --samples 4 --interval 10s":  {4, 30 * time.Second},
		"top prod/oomd0001 --samples 100": {1, 0}, // it has ended: nothing moves any more
	} {
		bubble.Run(t, line, func(t *testing.T) {
			b, p := oneFake(calm(), oomed())
			began := time.Now()
			require.Equal(t, 0, b.run(t, line).code)
			assert.Len(t, p.Calls(fake.OpUsage), want.calls)
			assert.Equal(t, want.took, time.Since(began))
		})
	}
}

func TestTopShowsOneFailedProviderBesideTheOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fake.Fault
	}{
		"listing": {fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")}},
		"usage":   {fake.Fault{Op: fake.OpUsage, Err: fault.New(fault.KindUnavailable, "503")}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			good, bad := fake.New(fake.Options{Name: "good", Now: atNoon}), fake.New(fake.Options{Name: "bad", Now: atNoon})
			good.Add(calm())
			bad.Add(loop())
			bad.Break(tc.fault)
			r := newBench(good, bad).run(t, "top -o json")
			assert.Equal(t, 3, r.code)
			assert.Len(t, r.list(t, "items"), 1)
			require.Len(t, r.list(t, "errors"), 1)
			assert.Equal(t, "bad", r.list(t, "errors")[0]["provider"])
			assert.Equal(t, false, r.object(t)["complete"])
		})
	}
}

func TestTopWhenAllFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(calm(), loop())
		p.Break(fake.Fault{Op: fake.OpUsage, Err: fault.New(fault.KindUnavailable, "503")})
		r := b.run(t, "top -o json")
		assert.Equal(t, 7, r.code)
		assert.Empty(t, r.list(t, "items"))
		assert.Len(t, r.list(t, "errors"), 2, "each sandbox could not be read")
		b.adjust = func(d *Deps) { d.Fleet = failingFleet(fault.New(fault.KindAuth, "401")) }
		assert.Equal(t, 4, b.run(t, "top -o json").code)
	})
}

func TestTopSaysAMissingAbilityOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "mute", Now: atNoon})
		p.Add(running("aaaa", time.Minute), running("bbbb", time.Minute))
		b := newBench()
		b.members = []providers.Provider{p.Bare()}
		r := b.run(t, "top -o json")
		assert.Equal(t, 9, r.code)
		require.Len(t, r.list(t, "errors"), 1)
		assert.Contains(t, r.list(t, "errors")[0]["message"], "has no usage")
	})
}

func TestTopOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(oomed())
		r := b.run(t, "top")
		assert.Equal(t, 0, r.code)
		assert.Contains(t, r.stderr, "no sandbox runs")
		r = b.run(t, "top -o json")
		assert.Empty(t, r.list(t, "items"))
		assert.Equal(t, true, r.object(t)["complete"])
		assert.Empty(t, r.stderr)
	})
}

func TestTopInterrupted(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(calm(), loop())
	b.context = halt
	r := b.run(t, "top -o json")
	assert.Equal(t, 130, r.code)
	assert.Len(t, r.list(t, "errors"), 1)
	assert.Equal(t, true, r.object(t)["interrupted"])

	b.context = haltedAfter(t, 300*time.Millisecond)
	r = b.run(t, "top --interval 1h -o json")
	assert.Equal(t, 130, r.code)
	assert.Len(t, r.list(t, "items"), 2, "what was seen until then")
	assert.Len(t, r.list(t, "errors"), 1)
}

func TestTopWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(loop())
		b.context = func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeoutCause(ctx, 3500*time.Millisecond, context.Canceled)
			t.Cleanup(cancel)
			return ctx
		}
		r := b.run(t, "top --watch")
		assert.Equal(t, 0, r.code, "an interrupt is how a watch ends")
		assert.NotContains(t, r.stderr, "error")
		assert.Contains(t, r.stderr, "sbx: 12:00:00 UTC: 1 sandbox: 1 stuck; no change since 12:00:00\n")
		looks := strings.Count(r.stdout, "prod/loop0001")
		assert.GreaterOrEqual(t, looks, 3)
		assert.Equal(t, looks, strings.Count(r.stdout, "busy_loop\tbusy_loop"), "each look knows the rate")
		assert.Len(t, p.Calls(fake.OpUsage), looks+1, "only the first look needs two samples")
	})
}

func TestTopWatchOutlastsABadMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(calm(), loop())
		p.Break(fake.Fault{Op: fake.OpUsage, ID: "calm0001", After: 2, Times: 1, Err: fault.New(fault.KindUnavailable, "503")})
		b.context = haltedAfter(t, 5500*time.Millisecond)
		r := b.run(t, "top --watch")
		assert.Equal(t, 0, r.code)
		assert.Equal(t, 1, strings.Count(r.stderr, "503"))
		assert.Equal(t, 1, strings.Count(r.stderr, "incomplete, so changes are not shown"))
		assert.GreaterOrEqual(t, strings.Count(r.stdout, "prod/calm0001"), 3)
	})
}

func TestTopForPeople(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop(), calm(), using("leak000001", time.Minute, growing(0.2, 60, 10)), running("mute0001", time.Minute))
		b.tty, b.width, b.env = true, 80, []string{"NO_COLOR=1"}
		r := b.run(t, "top -q")
		require.Equal(t, 0, r.code, r.stderr)
		golden(t, "top", r.stdout)
		for line := range strings.Lines(r.stdout) {
			assert.LessOrEqual(t, displayWidth(strings.TrimSuffix(line, "\n")), 80, line)
		}
	})
}

func TestTopShowsProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(calm())
		b.tty, b.width = true, 80
		assert.Contains(t, b.run(t, "top --samples 3 --interval 5s").stderr, "2 of 3")
		assert.Empty(t, b.run(t, "top --samples 3 --interval 5s -q").stderr)
	})
}
