package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// total gives the total of a document.
func (r result) total(t *testing.T) map[string]any {
	t.Helper()
	total, ok := r.object(t)["total"].(map[string]any)
	require.True(t, ok, r.stdout)
	return total
}

// timedOut is one that a time limit ended ten minutes ago.
func timedOut(id string) fake.Seed {
	seed := running(id, time.Hour)
	seed.Sandbox.State, seed.Sandbox.EndedAt = sandbox.StateFailed, noon.Add(-10*time.Minute)
	seed.Sandbox.Exit = &sandbox.Exit{Class: sandbox.ClassTimeout, Cause: sandbox.CauseTimeout, Confidence: sandbox.Certain}
	return seed
}

func inState(id string, age time.Duration, state sandbox.State) fake.Seed {
	seed := running(id, age)
	seed.Sandbox.State = state
	return seed
}

func TestStatsShowsTheLimits(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	r := b.run(t, "stats -o json")
	item, total := r.list(t, "items")[0], r.total(t)
	assert.Equal(t, map[string]any{
		"active_max": 20.0, "stuck_age_seconds": 600.0, "watch_age_seconds": 300.0, "timeout_rate_high": 0.05, "timeout_rate_good": 0.02,
	}, item["thresholds"])
	assert.Equal(t, item["thresholds"], total["thresholds"])
}

func TestStatsCountAndAge(t *testing.T) {
	t.Parallel()
	silent := running("old00001", 21*time.Minute)
	silent.Sandbox.LastActivityAt = noon.Add(-20 * time.Minute)
	future := running("future01", -time.Hour)
	b, _ := oneFake(
		running("new00001", 30*time.Second), running("mid00001", 4*time.Minute), silent, future,
		inState("prov0001", 6*time.Minute, sandbox.StateProvisioning), inState("term0001", time.Hour, sandbox.StateTerminating), timedOut("late0001"),
	)
	item := b.run(t, "stats -o json").list(t, "items")[0]
	for key, want := range map[string]float64{
		"active": 4, "provisioning": 1, "terminating": 1, "total_created": 7, "total_destroyed": 1,
		"age_min_seconds": 30, "age_p50_seconds": 240, "age_p95_seconds": 1260, "age_max_seconds": 1260, // of the running ones whose age is known
		"stuck": 1, "unjudged": 2, "timeout_rate": 1,
	} {
		assert.InDelta(t, want, item[key], 0.001, key)
	}
	looked := b.run(t, "stats --look -o json")
	for key, want := range map[string]float64{"stuck": 2, "unjudged": 1} { // what came to be in the future has no age
		assert.InDelta(t, want, looked.list(t, "items")[0][key], 0.001, key)
		assert.InDelta(t, want, looked.total(t)[key], 0.001, key)
	}
	assert.Contains(t, b.run(t, "stats").stderr, "1 stuck, 2 not judged: `sbx stats --look` queries them")
	assert.Contains(t, b.run(t, "stats --look").stderr, "2 stuck: prod 2 (1 not started, 1 silent); 1 not judged, since no source shows whether they are active: `sbx ls --where 'stuck == nil'` lists them")
}

func TestStatsTellUnknownFromNothing(t *testing.T) {
	t.Parallel()
	none, _ := oneFake()
	item := none.run(t, "stats -o json").list(t, "items")[0]
	assert.InDelta(t, 0.0, item["active"], 0)
	assert.InDelta(t, 0.0, item["stuck"], 0)
	for _, key := range []string{"age_min_seconds", "age_p50_seconds", "age_p95_seconds", "age_max_seconds", "timeout_rate"} {
		assert.Nil(t, item[key], key+": of no sandbox there is none")
	}

	_, p := oneFake(running("aaaa", time.Minute))
	bare := newBench()
	bare.members = []providers.Provider{p.Bare()}
	r := bare.run(t, "stats -o json")
	assert.Equal(t, 0, r.code)
	item = r.list(t, "items")[0]
	assert.InDelta(t, 1.0, item["active"], 0, "counted")
	for _, key := range []string{"total_created", "total_destroyed", "timeout_rate"} {
		assert.Nil(t, item[key], key+": a listing does not tell")
		assert.Nil(t, r.total(t)[key], key)
	}
}

func TestStatsTotalIsOfWhatAnswered(t *testing.T) {
	t.Parallel()
	one, two, down := fake.New(fake.Options{Name: "one", Now: atNoon}), fake.New(fake.Options{Name: "two", Now: atNoon}), fake.New(fake.Options{Name: "down", Now: atNoon})
	one.Add(running("aaaa", time.Minute), timedOut("bbbb"))
	two.Add(running("cccc", 3*time.Minute), running("dddd", 2*time.Minute), inState("eeee", time.Hour, sandbox.StateTerminated))
	down.Add(running("ffff", time.Hour))
	down.Break(fake.Fault{Op: fake.OpStats, Err: fault.New(fault.KindUnavailable, "503")})
	r := newBench(one, two, down).run(t, "stats -o json")
	assert.Equal(t, 3, r.code)
	assert.Len(t, r.list(t, "items"), 2, "who does not answer has no figures")
	assert.Equal(t, false, r.object(t)["complete"])
	require.Len(t, r.list(t, "errors"), 1)
	assert.Equal(t, "down", r.list(t, "errors")[0]["provider"])
	for key, want := range map[string]float64{
		"active": 3, "total_created": 5, "total_destroyed": 2, "timeout_rate": 0.5,
		"age_min_seconds": 60, "age_p50_seconds": 120, "age_max_seconds": 180, "stuck": 0,
	} {
		assert.InDelta(t, want, r.total(t)[key], 0.001, key)
	}
}

func TestStatsWithoutAListing(t *testing.T) {
	t.Parallel()
	good, half := fake.New(fake.Options{Name: "good", Now: atNoon}), fake.New(fake.Options{Name: "half", Now: atNoon})
	good.Add(running("aaaa", time.Minute))
	half.Add(running("bbbb", time.Hour))
	half.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
	r := newBench(good, half).run(t, "stats -o json")
	assert.Equal(t, 3, r.code)
	items := r.list(t, "items")
	require.Len(t, items, 2)
	assert.InDelta(t, 1.0, items[1]["active"], 0, "its counters are its own")
	for _, key := range []string{"stuck", "age_max_seconds"} {
		assert.Nil(t, items[1][key], key)
		assert.Nil(t, r.total(t)[key], key+": a part of it is not known")
	}
	assert.InDelta(t, 2.0, r.total(t)["active"], 0)
}

func TestStatsExits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		err  error
		code int
	}{
		"table": {"stats", nil, 0}, "wide": {"stats -o wide", nil, 0}, "csv": {"stats -o csv", nil, 0},
		"ndjson": {"stats -o ndjson", nil, 0}, "yaml": {"stats -o yaml", nil, 0},
		"columns":          {"stats --columns provider,active,stuck", nil, 0},
		"unknown column":   {"stats --columns activ", nil, 2},
		"no check":         {"stats -o nagios", nil, 2},
		"an argument":      {"stats prod/aaaa", nil, 2},
		"unknown profile":  {"stats --provider nope", nil, 2},
		"limit of nothing": {"stats --timeout 0s", nil, 2},
		"nobody answers":   {"stats -o json", fault.New(fault.KindUnavailable, "503"), 7},
		"no right":         {"stats -o json", fault.New(fault.KindAuth, "401"), 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := oneFake(running("aaaa", time.Minute))
			if tc.err != nil {
				p.Break(fake.Fault{Op: fake.OpStats, Err: tc.err}, fake.Fault{Op: fake.OpList, Err: tc.err})
			}
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, r.stderr)
			switch tc.code {
			case 0:
				assert.Empty(t, r.stderr)
				assert.Contains(t, r.stdout, "prod")
			case 2:
				assert.Empty(t, r.stdout)
				assert.NotEmpty(t, r.stderr)
			default:
				assert.Empty(t, r.list(t, "items"))
				assert.Nil(t, r.total(t)["active"], "nothing is known, which is not 0")
			}
		})
	}
}

func TestStatsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBench(fake.New(fake.Options{Name: "one"}), fake.New(fake.Options{Name: "two"}))
	b.context = halt
	r := b.run(t, "stats -o json")
	assert.Equal(t, 130, r.code)
	assert.Equal(t, true, r.object(t)["interrupted"])
	assert.Len(t, r.list(t, "errors"), 1, "it is said once, and not of each provider")
}

func TestStatsForPeople(t *testing.T) {
	t.Parallel()
	var full []fake.Seed
	for i := range 21 {
		full = append(full, running(strings.Repeat("x", 4)+string(rune('a'+i)), time.Duration(i+1)*time.Minute/2))
	}
	silent := running("old00001", 14*24*time.Hour)
	silent.Sandbox.LastActivityAt = noon.Add(-20 * time.Minute)
	prod, daytona, mono := fake.New(fake.Options{Name: "prod", Now: atNoon}), fake.New(fake.Options{Name: "daytona", Now: atNoon}), fake.New(fake.Options{Name: "mono", Now: atNoon})
	prod.Add(append(full, silent, timedOut("late0001"), inState("done0001", time.Hour, sandbox.StateTerminated))...)
	mono.Add(running("aaaa0001", time.Minute))
	b := newBench(prod, daytona)
	b.members = append(b.members, mono.Bare())
	b.tty, b.width, b.env = true, 80, []string{"NO_COLOR=1"}
	r := b.run(t, "stats")
	require.Equal(t, 0, r.code, r.stderr)
	golden(t, "stats", r.stdout)
	for line := range strings.Lines(r.stdout) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}
