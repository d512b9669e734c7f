package commands

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// withLabels is a running sandbox with these labels.
func withLabels(id string, labels map[string]string) fake.Seed {
	s := running(id, time.Hour)
	s.Sandbox.Labels = labels
	return s
}

func TestKeepSaysWhatAnotherReadShows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		had  map[string]string
		line string
		want map[string]string
		says string
	}{
		"until it is taken back": {
			nil, "keep prod/aaaa", map[string]string{"sbx/keep": "true"}, "prod/aaaa: kept until `sbx keep prod/aaaa --off` (sbx/keep=true)\n",
		},
		"for a time": {
			map[string]string{"team": "a"},
			"keep aaaa --for 90m",
			map[string]string{"team": "a", "sbx/keep": "2026-11-20T13:30:00Z"},
			"prod/aaaa: kept until 2026-11-20T13:30:00Z (sbx/keep=2026-11-20T13:30:00Z)\n",
		},
		"shorter than before": {
			map[string]string{"sbx/keep": "true"},
			"keep prod/aaaa --for 1h",
			map[string]string{"sbx/keep": "2026-11-20T13:00:00Z"},
			"prod/aaaa: kept until 2026-11-20T13:00:00Z (sbx/keep=2026-11-20T13:00:00Z), before that true\n",
		},
		"another spelling": {
			map[string]string{"SBX/Keep ": "true"},
			"keep prod/aaaa --off", nil,
			"prod/aaaa: no longer kept (it was sbx/keep=true); cleanup, reconcile --fix and terminate may end it\n",
		},
		"it was not there": {
			map[string]string{"team": "a"},
			"keep prod/aaaa --off",
			map[string]string{"team": "a"},
			"prod/aaaa: it had no label sbx/keep; cleanup, reconcile --fix and terminate may end it\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := oneFake(withLabels("aaaa", tc.had))
			r := b.run(t, tc.line)
			assert.Equal(t, 0, r.code, r.stderr)
			assert.Equal(t, tc.says, r.stdout)
			now, err := p.Get(t.Context(), "aaaa")
			require.NoError(t, err)
			assert.Len(t, now.Labels, len(tc.want))
			assert.Subset(t, now.Labels, tc.want)
		})
	}
}

// TestKeepReadsWhatAnAnswerDoesNotSay: a 502 may come after the effect, and then the sandbox is kept.
func TestKeepReadsWhatAnAnswerDoesNotSay(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{"keep prod/aaaa": "prod/aaaa: kept until", "keep prod/kept --off": "prod/kept: no longer kept"} {
		b, p := oneFake(withLabels("aaaa", nil), withLabels("kept", map[string]string{"sbx/keep": "true"}))
		p.Break(fake.Fault{Op: fake.OpLabels, Late: true, Err: fault.New(fault.KindUnavailable, "502")})
		r := b.run(t, line)
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, says)
	}
}

func TestKeepFails(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.KindUnavailable, "503")
	for name, tc := range map[string]struct {
		line   string
		faults []fake.Fault
		code   int
		stderr string
	}{
		"has ended":                 {"keep prod/done", nil, 6, "it has ended: it is terminated"},
		"unknown":                   {"keep prod/nope", nil, 5, "nope"},
		"one of two":                {"keep prod/aaaa prod/nope", nil, 3, "nope"},
		"both":                      {"keep prod/aaaa --for 1h --off", nil, 2, "exclude each other"},
		"refused":                   {"keep prod/aaaa", []fake.Fault{{Op: fake.OpLabels, Err: fault.New(fault.KindAuth, "403")}}, 4, "403"},
		"accepted without effect":   {"keep prod/aaaa", []fake.Fault{{Op: fake.OpLabels, Skip: true}}, 8, "does not show the label sbx/keep"},
		"no read after the write":   {"keep prod/aaaa", []fake.Fault{{Op: fake.OpGet, After: 1, Err: down}}, 8, "the read after that failed"},
		"answered 502, not written": {"keep prod/aaaa", []fake.Fault{{Op: fake.OpLabels, Late: true, Skip: true, Err: down}}, 7, "503; another read shows that its labels were not written"},
		"answered 502, and no read": {"keep prod/aaaa", []fake.Fault{{Op: fake.OpLabels, Late: true, Err: down}, {Op: fake.OpGet, After: 1, Err: down}}, 7, "whether its labels were written is not known"},
		"taken back without effect": {"keep prod/kept --off", []fake.Fault{{Op: fake.OpLabels, Skip: true}}, 8, "does not show the label sbx/keep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := oneFake(withLabels("aaaa", nil), withLabels("kept", map[string]string{"sbx/keep": "true"}), endedSeed("done", sandbox.StateTerminated, nil))
			p.Break(tc.faults...)
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Contains(t, r.stderr, tc.stderr)
		})
	}
}

func TestKeepWhereLabelsCannotBeChanged(t *testing.T) {
	t.Parallel()
	b, p := oneFake(withLabels("aaaa", nil))
	b.members[0] = p.Bare()
	r := b.run(t, "keep prod/aaaa")
	assert.Equal(t, 9, r.code, r.stderr)
	assert.Contains(t, r.stderr, "`protect: {ids: [prod/aaaa]}`")
}

// TestKeepSaysWhatElseProtects: the label is gone, and the configuration protects it still.
func TestKeepSaysWhatElseProtects(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(withLabels("aaaa", map[string]string{"sbx/keep": "true"}))
	b.configure(t, "protect: {ids: [prod/aaaa]}\n")
	r := b.run(t, "keep prod/aaaa --off -o json")
	assert.Equal(t, 0, r.code, r.stderr)
	item := r.list(t, "items")[0]
	assert.Equal(t, false, item["kept"])
	assert.Equal(t, "true", item["was"])
	assert.Equal(t, "protected by the configuration", item["reason"])
}

// TestKeepReadsReferencesFromAPipe, each line one, and prints one item for each.
func TestKeepReadsReferencesFromAPipe(t *testing.T) {
	t.Parallel()
	b, p := oneFake(withLabels("aaaa", nil), withLabels("bbbb", nil))
	b.stdin = "prod/aaaa\nprod/bbbb\n"
	r := b.run(t, "keep --for 1h - -o ndjson")
	assert.Equal(t, 0, r.code, r.stderr)
	for _, id := range []string{"aaaa", "bbbb"} {
		now, err := p.Get(t.Context(), id)
		require.NoError(t, err)
		assert.NotEmpty(t, sandbox.Kept(now.Labels, noon))
	}
}

// TestWhatIsKeptIsListed: by its label, by the configuration, and why.
func TestWhatIsKeptIsListed(t *testing.T) {
	t.Parallel()
	b, p := oneFake(withLabels("aaaa", map[string]string{"sbx/keep": "true"}), withLabels("bbbb", nil), withLabels("cccc", nil),
		withLabels("dddd", map[string]string{"sbx/keep": "2026-11-20T13:00:00Z"}), withLabels("over", map[string]string{"sbx/keep": "2026-11-20T11:00:00Z"}))
	b.configure(t, "protect: {ids: [prod/bbbb]}\n")
	r := b.run(t, "keep --list")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "prod/aaaa: protected: it has the label sbx/keep=true\nprod/bbbb: protected by the configuration\nprod/dddd: protected: its label sbx/keep holds until 2026-11-20T13:00:00Z\n", r.stdout)
	r = b.run(t, "keep --list -o json")
	items := r.list(t, "items")
	require.Len(t, items, 3)
	assert.Equal(t, "2026-11-20T13:00:00Z", items[2]["until"])
	assert.Nil(t, items[1]["label"])
	p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
	assert.Equal(t, 7, b.run(t, "keep --list").code, "what could not be listed may be kept too")
	for _, line := range []string{"keep --list prod/aaaa", "keep --list --off", "keep --list --for 1h"} {
		assert.Equal(t, 2, b.run(t, line).code, line)
	}
}
