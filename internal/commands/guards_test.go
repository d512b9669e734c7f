package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/fake"
)

const production = "providers:\n  prod: {type: local}\nproduction: [prod]\n"

func TestGuardsRefuseTheWholeRun(t *testing.T) {
	t.Parallel()
	const six = "terminate aaaa bbbb cccc dddd eeee ffff"
	for name, tc := range map[string]struct {
		line, config, stdin string
		tty                 bool
		code, asked         int
	}{
		"five":                               {line: "terminate aaaa bbbb cccc dddd eeee", asked: 5},
		"six unattended":                     {line: six, code: 11},
		"six times one":                      {line: "terminate aaaa aaaa aaaa aaaa aaaa aaaa", asked: 1},
		"six, the wrong number":              {line: six, tty: true, stdin: "5\n", code: 11},
		"six, yes is no number":              {line: six, tty: true, stdin: "yes\n", code: 11},
		"six, no answer":                     {line: six, tty: true, code: 11},
		"one of production":                  {line: "terminate prod/aaaa", config: production, asked: 1},
		"one of production, a word, named":   {line: "terminate aaaa --production prod", config: production, asked: 1},
		"one of production, a word, typed":   {line: "terminate aaaa", config: production, tty: true, stdin: "prod\n", asked: 1},
		"one of production, typed and piped": {line: "terminate prod/aaaa -", stdin: "prod/aaaa\n", config: production, asked: 1},
		"two of production":                  {line: "terminate prod/aaaa prod/bbbb", config: production, code: 11},
		"two of production with yes":         {line: "terminate prod/aaaa prod/bbbb --yes", config: production, code: 11},
		"two of production, named":           {line: "terminate aaaa bbbb --production prod", config: production, asked: 2},
		"two of production, typed":           {line: "terminate aaaa bbbb", config: production, tty: true, stdin: "prod\n", asked: 2},
		"two of production, mistyped":        {line: "terminate aaaa bbbb", config: production, tty: true, stdin: "2\n", code: 11},
		"six of production, both":            {line: six, config: production, tty: true, stdin: "6\nprod\n", asked: 6},
		"six of production, one":             {line: six, config: production, tty: true, stdin: "6\n", code: 11},
		"six of production, named":           {line: six + " --production prod", config: production, code: 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := endBench(t, 6)
			b.configure(t, tc.config)
			b.tty, b.stdin = tc.tty, tc.stdin
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked)
			if tc.code == 11 {
				assert.Contains(t, r.stderr, "sbx: hint: ")
			}
			if tc.line == six && tc.config == "" && !tc.tty {
				assert.Empty(t, p.Calls(), "nobody can answer: nothing is read either")
			}
		})
	}
}

func TestQuestionEndsWithTheOperatorsSignal(t *testing.T) {
	t.Parallel()
	b, p := endBench(t, 6)
	b.tty, b.context = true, canceled
	r := b.run(t, "terminate prod/aaaa prod/bbbb prod/cccc prod/dddd prod/eeee prod/ffff")
	assert.Equal(t, 130, r.code)
	assert.Empty(t, p.Calls(fake.OpTerminate))
}

func TestPlanWritesNothing(t *testing.T) {
	t.Parallel()
	b, p := endBench(t, 6)
	b.configure(t, production+"protect: {ids: [bbbb]}\n")
	r := b.run(t, "terminate aaaa bbbb cccc dddd eeee ffff --dry-run -o json")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Empty(t, p.Calls(fake.OpTerminate))
	plan, ok := r.object(t)["plan"].(map[string]any)
	require.True(t, ok)
	assert.Nil(t, plan["cutoff"])
	assert.Len(t, plan["selected"], 5)
	assert.Equal(t, []any{map[string]any{"ref": "prod/bbbb", "reason": "protected by the configuration"}}, plan["kept"])
	assert.Equal(t, []any{
		map[string]any{"name": "unasked", "limit": 5.0, "value": 6.0, "ok": false},
		map[string]any{"name": "production prod", "limit": 0.0, "value": 6.0, "ok": false},
	}, plan["guards"])
}

func TestPlanExitsByWhatWasNotFound(t *testing.T) {
	t.Parallel()
	for line, code := range map[string]int{
		"terminate prod/aaaa --dry-run":           0,
		"terminate prod/zzzz --dry-run":           5,
		"terminate prod/aaaa prod/zz --dry-run":   3,
		"terminate prod/aaaa --dry-run -o csv":    2,
		"terminate prod/aaaa --dry-run -o ndjson": 0,
	} {
		b, p := endBench(t, 1)
		r := b.run(t, line)
		assert.Equal(t, code, r.code, line+r.stderr)
		assert.Empty(t, p.Calls(fake.OpTerminate))
	}
}

func TestPlanForPeople(t *testing.T) {
	t.Parallel()
	b, _ := endBench(t, 2)
	b.configure(t, "protect: {ids: [bbbb]}\n")
	b.tty, b.width, b.env = true, 80, []string{"NO_COLOR=1"}
	golden(t, "terminate-plan", b.run(t, "terminate aaaa bbbb --dry-run").stdout, `r-\S+`)
}
