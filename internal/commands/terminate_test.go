package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// configure gives the bench a user file.
func (b *bench) configure(t *testing.T, yaml string) *bench {
	t.Helper()
	b.home = t.TempDir()
	return b.configureAnew(t, yaml)
}

// configureAnew changes the user file of a bench that has run something already.
func (b *bench) configureAnew(t *testing.T, yaml string) *bench {
	t.Helper()
	file := filepath.Join(b.home, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	return b
}

// endBench is a bench over `prod` with sandboxes aaaa, bbbb, ... that run.
func endBench(t *testing.T, n int) (*bench, *fake.Provider) {
	t.Helper()
	var seeds []fake.Seed
	for i := range n {
		seeds = append(seeds, running(strings.Repeat(string(rune('a'+i)), 4), time.Minute))
	}
	b, p := oneFake(seeds...)
	return b.configure(t, ""), p
}

func TestTerminateEndsAndExitsByTheTable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line   string
		faults []fake.Fault
		code   int
		stdout string // outcomes and refs
		asked  int    // terminations that reached the provider
	}{
		"one":                {"terminate prod/aaaa", nil, 0, "verified prod/aaaa", 1},
		"bare prefix":        {"terminate aaaa bbbb", nil, 0, "verified prod/aaaa verified prod/bbbb", 2},
		"twice the same":     {"terminate aaaa prod/aaaa", nil, 0, "verified prod/aaaa", 1},
		"delete":             {"terminate prod/aaaa --delete", nil, 0, "verified prod/aaaa", 1},
		"kept":               {"terminate prod/keep", nil, 3, "skipped prod/keep", 0},
		"ended before":       {"terminate prod/over", nil, 0, "already_gone prod/over", 0},
		"unknown":            {"terminate prod/zzzz", nil, 5, "", 0},
		"unknown word":       {"terminate zzzz", nil, 5, "", 0},
		"one of two unknown": {"terminate prod/aaaa prod/zzzz", nil, 3, "verified prod/aaaa", 1},
		"ambiguous":          {"terminate twin", nil, 2, "", 0},
		"unknown profile":    {"terminate nope/aaaa", nil, 2, "", 0},
		"ill-formed":         {"terminate prod/../x", nil, 2, "", 0},
		"negative grace":     {"terminate aaaa --grace=-1s", nil, 2, "", 0},
		"columns":            {"terminate aaaa --columns refs", nil, 2, "", 0},
		"nagios":             {"terminate aaaa -o nagios", nil, 2, "", 0},
		"no such production": {"terminate aaaa --production nope", nil, 2, "", 0},
		"a false 410":        {"terminate prod/aaaa", []fake.Fault{{Op: fake.OpGet, Err: fault.New(fault.KindGone, "410")}}, 0, "verified prod/aaaa", 1},
		"unseen":             {"terminate prod/aaaa --wait 1s", []fake.Fault{{Op: fake.OpTerminate, Skip: true}}, 8, "accepted prod/aaaa", 1},
		"failed":             {"terminate prod/aaaa", []fake.Fault{{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "403")}}, 4, "failed prod/aaaa", 1},
		"one of two fails": {
			"terminate prod/aaaa prod/bbbb",
			[]fake.Fault{{Op: fake.OpTerminate, ID: "bbbb", Err: fault.New(fault.KindAuth, "403")}},
			3, "failed prod/bbbb verified prod/aaaa", 2,
		},
		"word while blind": {"terminate aaaa", []fake.Fault{{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")}}, 7, "", 0},
		"ref while blind":  {"terminate prod/aaaa", []fake.Fault{{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")}}, 0, "verified prod/aaaa", 1},
		"provider down":    {"terminate prod/aaaa", []fake.Fault{{Op: fake.OpGet, Err: fault.New(fault.KindUnavailable, "503")}}, 7, "", 0},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := endBench(t, 2)
			keep, over := running("keep", time.Minute), running("over", time.Minute)
			keep.Sandbox.Labels = map[string]string{"sbx/keep": "true"}
			over.Sandbox.State = sandbox.StateTerminated
			one, two := running("twin1111", time.Minute), running("twin2222", time.Minute)
			p.Add(keep, over, one, two)
			p.Break(tc.faults...)
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, r.stderr)
			var got []string
			for line := range strings.Lines(r.stdout) {
				words := strings.Fields(strings.ReplaceAll(line, ":", " "))
				got = append(got, words[0]+" "+words[1])
			}
			assert.Equal(t, sortedPairs(tc.stdout), sortedPairs(strings.Join(got, " ")))
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked)
			if tc.code != 0 {
				assert.Contains(t, r.stderr, "sbx: error: ")
			}
		})
	}
}

// sortedPairs makes the order of completion comparable.
func sortedPairs(text string) map[string]string {
	words := strings.Fields(text)
	pairs := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		pairs[words[i+1]] = words[i]
	}
	return pairs
}

func TestTerminateDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line  string
		code  int
		items int
	}{
		"normal":   {"terminate prod/aaaa prod/bbbb -o json", 0, 2},
		"partial":  {"terminate prod/aaaa prod/zzzz -o json", 3, 1},
		"failing":  {"terminate prod/zzzz -o json", 5, 0},
		"refused":  {"terminate a1 a2 a3 a4 a5 a6 -o json", 11, 0},
		"canceled": {"terminate prod/aaaa -o json", 130, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := endBench(t, 2)
			if name == "canceled" {
				b.context = canceled
			}
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, r.stderr)
			assert.Empty(t, r.stderr)
			o := r.object(t)
			assert.Equal(t, "sbx.terminate/v1", o["schema"])
			assert.Regexp(t, `^r-20261120T120000000-[a-z2-7]{6}$`, o["run_id"])
			assert.Equal(t, tc.code == 130, o["interrupted"])
			counts, ok := o["counts"].(map[string]any)
			require.True(t, ok)
			assert.Len(t, counts, len(sandbox.Outcomes())+1)
			assert.InDelta(t, tc.items, counts["selected"], 0)
			require.Len(t, r.list(t, "items"), tc.items)
			for _, item := range r.list(t, "items") {
				assert.Equal(t, "verified", item["outcome"])
				evidence, ok := item["evidence"].([]any)
				require.True(t, ok)
				assert.NotEmpty(t, evidence)
			}
		})
	}
}

func keysOf(object map[string]any) []string {
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	return keys
}

func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func TestTerminateReachesTheProviderAsAsked(t *testing.T) {
	t.Parallel()
	b, p := endBench(t, 1)
	b.env = []string{"USER=alice"}
	require.Equal(t, 0, b.run(t, "terminate prod/aaaa").code)
	events, err := p.Events(t.Context(), "aaaa")
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(events), "sbx terminate (alice, pid 4711)")
	assert.Equal(t, 0, b.run(t, "terminate prod/aaaa --delete").code)
	_, err = p.Get(t.Context(), "aaaa")
	require.Error(t, err, "--delete leaves nothing")
}

func TestTerminateSaysHowLongItTook(t *testing.T) {
	t.Parallel()
	b, _ := endBench(t, 1)
	assert.Regexp(t, `^verified prod/aaaa in \d+ms\n$`, b.run(t, "terminate prod/aaaa").stdout)
	assert.Equal(t, "already_gone prod/aaaa: it had ended before\n", b.run(t, "terminate prod/aaaa").stdout)
	assert.Equal(t, "REF\tOUTCOME\nprod/aaaa\talready_gone\n", b.run(t, "terminate prod/aaaa --columns ref,outcome").stdout)
	assert.Equal(t, "prod/aaaa\n", b.run(t, "terminate prod/aaaa -o name").stdout)
	for took, want := range map[time.Duration]string{12 * time.Millisecond: "12ms", 1234 * time.Millisecond: "1.2s", 90 * time.Second: "1m30s"} {
		assert.Equal(t, want, sandbox.FormatElapsed(took))
	}
}

func TestTerminateReadsReferencesFromStdin(t *testing.T) {
	t.Parallel()
	b, p := endBench(t, 3)
	b.stdin = "# from ls\nprod/aaaa\n\nbbbb\n"
	assert.Equal(t, 0, b.run(t, "terminate -").code)
	assert.Len(t, p.Calls(fake.OpTerminate), 2)
	b.stdin = ""
	assert.Equal(t, 2, b.run(t, "terminate -").code)
}

func TestTerminateShowsNoEscapesOfOthers(t *testing.T) {
	t.Parallel()
	b, p := endBench(t, 1)
	b.tty, b.width = true, 80
	p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "no \x1b]0;owned\x07 right")})
	r := b.run(t, "terminate prod/aaaa")
	assert.NotContains(t, r.stdout+r.stderr, "\x1b]0;")
	assert.Contains(t, r.stderr, `\x1b]0;owned\x07`)
}

func TestTerminateUnderATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := endBench(t, 1)
		p.Break(fake.Fault{Op: fake.OpTerminate, Hang: true})
		r := b.run(t, "terminate prod/aaaa --timeout 1s -o json")
		assert.Equal(t, 124, r.code)
		assert.Equal(t, "failed", r.list(t, "items")[0]["outcome"])
	})
}

// TestOneRefusedIDDoesNotKeepTheOthers: an id that a provider lists and refuses as an id, a word with several meanings,
// a profile that is not configured and what no reference can be fail alone where a pipe brought them, and refuse all where
// they were typed.
func TestOneRefusedIDDoesNotKeepTheOthers(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"prod/cccc", "twin", "prd/aaaa", "prod/od d", "prod/.."} {
		for _, verb := range []string{"terminate", "top --samples 1"} {
			b, p := endBench(t, 3)
			p.Break(fake.Fault{Op: fake.OpGet, ID: "cccc", Err: fault.Usage("%q is a reserved word of the API", "cccc")})
			for _, id := range []string{"twin0001", "twin0002"} {
				p.Add(running(id, time.Minute))
			}
			b.stdin = "prod/aaaa\n" + odd + "\nprod/bbbb\n"
			r := b.run(t, verb+" -")
			assert.Equal(t, 3, r.code, "%s %s: %s", verb, odd, r.stderr)
			assert.Contains(t, r.stderr, "standard input: ", odd)
			assert.Contains(t, r.stdout, "prod/aaaa")
			assert.Contains(t, r.stdout, "prod/bbbb")
			b.stdin = odd + "\n"
			assert.Equal(t, 2, b.run(t, verb+" -").code, "there is nothing else")
			b.stdin = "prod/aaaa\n"
			asked := len(p.Calls(fake.OpTerminate))
			assert.Equal(t, 2, b.runArgs(t, append(strings.Fields(verb), "-", odd)...).code, "what was typed is refused as a whole")
			assert.Len(t, p.Calls(fake.OpTerminate), asked)
		}
	}
}
