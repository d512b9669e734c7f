package commands

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestLogsFollowShowsOpenLines follows a prompt and a progress bar. A text that was shown before its line
// ended is not shown again, and formats for programs have whole lines.
func TestLogsFollowShowsOpenLines(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"":                  "one|1|2|3|four|",
		"--raw":             "one|123|four|",
		"--tail 1":          "one|1|2|3|four|",
		"--grep .":          "one|123|four|",
		"--columns line":    "LINE|one|123|four|",
		"--tail 1 -o csv":   "at,stream,line,pattern|one|123|four|",
		"--patterns --raw":  "",
		"--raw --grep [24]": "123|",
	} {
		bubble.Run(t, flags, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod"})
			made, err := p.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; printf 1; sleep 1; printf 2; sleep 1; echo 3; printf four; sleep 1; echo; sleep 600"}})
			require.NoError(t, err)
			r := newBench(p).run(t, "logs prod/"+made.ID+" -f --timeout 5s "+flags)
			assert.Equal(t, 124, r.code, r.stderr)
			var got strings.Builder
			for line := range strings.Lines(r.stdout) {
				if cells := strings.Split(line, ","); len(cells) == 4 && cells[0] != "at" {
					line = cells[2] + "\n"
				}
				got.WriteString(strings.ReplaceAll(line, "\n", "|"))
			}
			assert.Equal(t, want, got.String())
		})
	}
}
