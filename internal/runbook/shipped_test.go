package runbook_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/runbook"
	"sbx/runbooks"
)

// shipped are the documents of the checkout.
func shipped(tb testing.TB) *runbook.Catalog {
	tb.Helper()
	catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(tb.Context())
	require.NoError(tb, err)
	return catalog
}

func TestShippedRunbooksAreClean(t *testing.T) {
	t.Parallel()
	for _, f := range shipped(t).Lint(runbook.Context{Now: now()}) {
		assert.Failf(t, f.Message, "%s %s %s\n%s", f.Place(), f.Rule, f.Hint, f.Excerpt)
	}
}

// TestPageListsTheCollectors: docs/RUNBOOKS.md names each collector with its command.
func TestPageListsTheCollectors(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/RUNBOOKS.md")
	require.NoError(t, err)
	for _, c := range runbook.Collectors() {
		assert.Regexp(t, "(?m)^\\| `(?:\\w+`, `)?"+c.ID+"`.* \\| `sbx "+c.Command+"` \\|", string(page), c.ID)
	}
}
