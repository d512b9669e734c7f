package commands

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/fake"
)

// TestTheBeginningOfAnIDIsAskedFor where a sandbox is ended or changed, with a profile and without. Where nobody can
// be asked, it is refused, and nothing of that line is done. A name needs no question.
func TestTheBeginningOfAnIDIsAskedFor(t *testing.T) {
	t.Parallel()
	for line, tc := range map[string]struct {
		stdin string
		tty   bool
		code  int
		asked int
	}{
		"terminate prod/k3v9":           {code: 2},
		"terminate k3v9":                {code: 2},
		"terminate k3v9 other123":       {code: 2},
		"terminate other123 -":          {code: 3, asked: 1, stdin: "k3v9\n"},
		"terminate k3v9 --yes":          {code: 2, tty: true},
		"terminate k3v9 --yes --delete": {code: 2},
		"terminate k3v9 ":               {code: 0, tty: true, stdin: "y\n", asked: 1},
		"terminate prod/k3v9 ":          {code: 0, tty: true, stdin: "y\n", asked: 1},
		"terminate k3v9  ":              {code: 11, tty: true, stdin: "n\n"},
		"terminate k3v9   ":             {code: 11, tty: true},
		"terminate k3v9 k3v9x2mq":       {code: 2},
		"terminate k3v9 --dry-run":      {},
		"terminate worker --yes":        {asked: 1},
		"terminate prod/worker":         {asked: 1},
		"keep k3v9":                     {code: 2},
		"keep prod/k3v9 --for 1h":       {code: 2},
		"keep k3v9 --off":               {code: 2},
		"keep k3v9 ":                    {tty: true, stdin: "y\n", asked: 1},
		"keep k3v9  ":                   {tty: true, stdin: "no\n", code: 11},
		"keep prod/worker":              {asked: 1},
		"extend k3v9 --ttl 1h":          {code: 2},
		"extend prod/k3v9 --ttl 1h":     {code: 2},
		"extend k3v9 --ttl 1h --yes":    {code: 2, tty: true},
		"extend k3v9 --ttl 1h ":         {tty: true, stdin: "y\n", asked: 1},
		"extend k3v9 --ttl 1h  ":        {tty: true, stdin: "no\n", code: 11},
		"extend prod/worker --ttl 1h":   {asked: 1},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			begun, named := running("k3v9x2mq", time.Hour), running("other123", time.Hour)
			named.Sandbox.Name = "worker"
			begun.Sandbox.ExpiresAt, named.Sandbox.ExpiresAt = noon.Add(time.Minute), noon.Add(time.Minute)
			b, p := oneFake(begun, named)
			b.tty, b.stdin = tc.tty, tc.stdin
			r := b.run(t, line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Len(t, slices.Concat(p.Calls(fake.OpTerminate), p.Calls(fake.OpLabels), p.Calls(fake.OpExtend)), tc.asked)
			switch {
			case tc.code == 2, tc.code == 3:
				assert.Contains(t, r.stderr, "is only the beginning of an id")
				assert.Contains(t, r.stderr, "write prod/")
			case tc.tty:
				assert.Contains(t, r.stderr, "prod/k3v9x2mq", "what is meant is shown before the question")
			}
		})
	}
}

// TestTheBeginningOfATaskIsAskedFor alike.
func TestTheBeginningOfATaskIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		require.Equal(t, 0, b.run(t, "run --keep-alive --key one -- true").code)
		id, _ := b.run(t, "tasks show one -o json").item(t)["task"].(string)
		begin := id[:len(id)-3]
		r := b.run(t, "stop "+begin)
		assert.Equal(t, 2, r.code, r.stderr)
		assert.Contains(t, r.stderr, "write "+id)
		b.tty, b.stdin = true, "n\n"
		r = b.run(t, "stop "+begin)
		assert.Equal(t, 11, r.code, r.stderr)
		assert.Contains(t, r.stderr, begin+" is "+id)
		b.stdin = "y\n"
		require.Equal(t, 0, b.run(t, "stop "+begin).code)
		b.tty = false
		require.Equal(t, 0, b.run(t, "stop "+id).code)
	})
}
