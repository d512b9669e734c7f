package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEveryUsageErrorHasAHint: the one of its own, or the help of its verb.
func TestEveryUsageErrorHasAHint(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", 0))
	for line, hint := range map[string]string{
		"events aaaa -f --stats":              "`sbx events --help`",
		"events aaaa --diff --stats":          "`sbx events --help`",
		"audit --limit -1":                    "`sbx audit --help`",
		"tasks --limit -1":                    "`sbx tasks --help`",
		"top --samples -1":                    "`sbx top --help`",
		"top --limit -1":                      "`sbx top --help`",
		"verify --unknown-as x":               "`sbx verify --help`",
		"reconcile --yes":                     "`sbx reconcile --help`",
		"drill --clean --keep":                "`sbx drill --help`",
		"runbook show sandbox-stuck --file x": "leave the id or --file out",
		"config use-context":                  "`sbx config --help`",
		"port-forward":                        "`sbx --help`",
		"events aaaa --stats --columns at":    "leave --columns or --stats out",
	} {
		r := b.run(t, line)
		assert.Equal(t, 2, r.code, "%s: %s", line, r.stderr)
		assert.Contains(t, r.stderr, "hint: ", line)
		assert.Contains(t, r.stderr, hint, line)
	}
}
