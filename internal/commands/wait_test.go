package commands

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// endedSeed is a sandbox that ended five minutes before noon, an hour old.
func endedSeed(id string, state sandbox.State, exit *sandbox.Exit) fake.Seed {
	seed := running(id, time.Hour)
	seed.Sandbox.State, seed.Sandbox.Exit, seed.Sandbox.EndedAt = state, exit, noon.Add(-5*time.Minute)
	return seed
}

func TestWaitExits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		code int
		says string // on stderr
	}{
		"ended already":         {"wait prod/done0001", 0, ""},
		"a failure is an end":   {"wait prod/fail0001", 0, ""},
		"by prefix":             {"wait done", 0, ""},
		"runs already":          {"wait prod/runs0001 --for running", 0, ""},
		"ended while waited":    {"wait prod/done0001 --for running", 8, "will not run"},
		"limit":                 {"wait prod/runs0001 --timeout 1s", 124, "--timeout 1s"},
		"unknown":               {"wait prod/nope", 5, ""},
		"unknown word":          {"wait nope", 5, "no sandbox matches"},
		"ambiguous":             {"wait twin", 2, "matches 2 sandboxes"},
		"unknown profile":       {"wait prd/done0001", 2, "did you mean prod?"},
		"two sandboxes":         {"wait prod/done0001 prod/fail0001", 2, "name one sandbox"},
		"unknown column":        {"wait prod/done0001 --columns reff", 2, "did you mean ref?"},
		"no check":              {"wait prod/done0001 -o nagios", 2, "nagios"},
		"no time":               {"wait prod/runs0001 --timeout 0s", 2, "zero"},
		"name":                  {"wait prod/done0001 -o name", 0, ""},
		"columns":               {"wait prod/done0001 --columns ref,state", 0, ""},
		"a profile of its own":  {"wait done0001 --provider prod", 0, ""},
		"not among the chosen":  {"wait prod/done0001 --provider other", 2, "no provider is named"},
		"ill-formed references": {"wait prod/../x", 2, "not a sandbox reference"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, _ := oneFake(
				endedSeed("done0001", sandbox.StateTerminated, &sandbox.Exit{Code: new(0)}),
				endedSeed("fail0001", sandbox.StateFailed, &sandbox.Exit{Code: new(3)}),
				running("runs0001", time.Minute), running("twin0001", time.Minute), running("twin0002", time.Minute),
			)
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Contains(t, r.stderr, tc.says)
			if tc.code == 0 {
				assert.Empty(t, r.stderr)
				assert.NotEmpty(t, r.stdout)
			} else {
				assert.Empty(t, r.stdout)
			}
		})
	}
}

func TestWaitSaysHowItEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seed fake.Seed
		want string
	}{
		"well": {
			endedSeed("aaaa", sandbox.StateTerminated, &sandbox.Exit{Code: new(0)}),
			"prod/aaaa has ended: terminated, exit code 0, after 55m\n",
		},
		"oom": {
			endedSeed("aaaa", sandbox.StateFailed, &sandbox.Exit{
				Code: new(137), Signal: "SIGKILL", Cause: sandbox.CauseOOM, Confidence: sandbox.Certain,
			}),
			"prod/aaaa has ended: failed, exit code 137 by SIGKILL, cause oom (certain), after 55m\n",
		},
		"nobody saw it":    {endedSeed("aaaa", sandbox.StateTerminated, nil), "prod/aaaa has ended: terminated, after 55m\n"},
		"nor when it came": {fake.Seed{Sandbox: sandbox.Sandbox{ID: "aaaa", State: sandbox.StateTerminated}}, "prod/aaaa has ended: terminated\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := oneFake(tc.seed)
			assert.Equal(t, tc.want, b.run(t, "wait prod/aaaa").stdout)
		})
	}
	b, _ := oneFake(running("aaaa", time.Minute))
	assert.Equal(t, "prod/aaaa is running\n", b.run(t, "wait prod/aaaa --for running").stdout)
}

func TestWaitShowsTheItemOfLs(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(endedSeed("aaaa", sandbox.StateFailed, &sandbox.Exit{Code: new(3)}))
	r := b.run(t, "wait prod/aaaa -o json")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "sbx.wait/v1", r.object(t)["schema"])
	item := r.item(t)
	assert.InDelta(t, 3.0, item["exit_code"], 0)
	assert.Equal(t, "failed", item["state"])
}

func TestWaitFailsInADocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fake.Fault
		line  string
		kind  string
		code  int
	}{
		"a false 410": {fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindGone, "it has expired")}, "wait prod/aaaa -o json", "unverified", 8},
		"no rights":   {fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindAuth, "401")}, "wait prod/aaaa -o json", "auth", 4},
		"no list":     {fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")}, "wait aaaa -o json", "unavailable", 7},
		"limit":       {fake.Fault{Op: fake.OpGet, Hang: true}, "wait prod/aaaa -o json --timeout 1s", "timeout", 124},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(running("aaaa", time.Minute))
			p.Break(tc.fault)
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Nil(t, r.object(t)["item"])
			errs := r.list(t, "errors")
			require.Len(t, errs, 1)
			assert.Equal(t, tc.kind, errs[0]["kind"])
		})
	}
}

func TestWaitOutlastsABadMoment(t *testing.T) {
	t.Parallel()
	b, p := oneFake(endedSeed("aaaa", sandbox.StateTerminated, nil))
	p.Break(fake.Fault{Op: fake.OpGet, After: 1, Times: 3, Err: fault.New(fault.KindUnavailable, "503")})
	assert.Equal(t, 0, b.run(t, "wait prod/aaaa").code)
	assert.Len(t, p.Calls(fake.OpGet), 5)
}

func TestWaitIsInterrupted(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	b.context = interrupted
	r := b.run(t, "wait prod/aaaa -o json")
	assert.Equal(t, 130, r.code)
	assert.Equal(t, true, r.object(t)["interrupted"])
}

// interrupted is what a SIGINT leaves of a context.
func interrupted(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(fault.New(fault.KindCanceled, "interrupted"))
	return ctx
}

func TestWaitNeutralisesNames(t *testing.T) {
	t.Parallel()
	seed := endedSeed("aaaa", sandbox.StateTerminated, nil)
	seed.Sandbox.Name = "\x1b[2Jowned"
	b, _ := oneFake(seed)
	for _, format := range []string{"table", "wide", "csv", "json", "yaml", "ndjson"} {
		assert.NotContains(t, b.run(t, "wait prod/aaaa --columns name -o "+format).stdout, "\x1b", format)
	}
}

// TestWaitForWhatIsProvedGone: an end that is on record as verified needs no provider that remembers it.
func TestWaitForWhatIsProvedGone(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon, After: fake.AfterMissing})
	p.Add(running("aaaa0001", time.Hour), running("bbbb0001", time.Hour))
	b := (&bench{members: []providers.Provider{p}}).configure(t, "")
	require.Equal(t, 0, b.run(t, "terminate prod/aaaa0001").code)
	for _, word := range []string{"prod/aaaa0001", "aaaa0001"} {
		r := b.run(t, "wait "+word+" -o json")
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Equal(t, "terminated", r.item(t)["state"])
	}
	assert.Equal(t, 5, b.run(t, "wait prod/nope0001").code)
	assert.Equal(t, 5, b.run(t, "wait prod/aaaa0001 --for running").code)
}
