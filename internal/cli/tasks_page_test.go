package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/task"
)

// TestTheRulesOnThePageAreThoseThatHold compares the table of docs/TASKS.md with the
// rules that a task goes by; `go test -update` does not write it.
func TestTheRulesOnThePageAreThoseThatHold(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	rows.WriteString("| class | again | why |\n|---|---|---|\n")
	for _, r := range task.Rulings() {
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", r.Class, r.Again, r.Why)
	}
	assert.Contains(t, page(t, "docs/TASKS.md"), rows.String()+"\n", "the table is to be:\n%s", rows.String())
	for _, class := range constants(t, "sandbox")["Class"] {
		assert.True(t, class == "ok" || strings.Contains(rows.String(), "`"+class+"`"), class)
	}
}

func TestTheStatesOnThePageAreAll(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/TASKS.md")
	for _, s := range task.States() {
		assert.Contains(t, text, "\n| `"+string(s)+"` | ")
	}
}
