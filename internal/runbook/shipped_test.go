package runbook_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/docs"
	"sbx/internal/runbook"
	"sbx/runbooks"
)

// shipped are the documents of the checkout.
func shipped(tb testing.TB) *runbook.Shelf {
	tb.Helper()
	shelf, err := runbook.Library{Shipped: runbooks.Files}.Load(tb.Context())
	require.NoError(tb, err)
	return shelf
}

// requirements are the ids of docs/REQUIREMENTS.md, in its order.
func requirements(tb testing.TB) []string {
	tb.Helper()
	page, err := docs.Files.ReadFile("REQUIREMENTS.md")
	require.NoError(tb, err)
	var ids []string
	for _, m := range regexp.MustCompile(`(?m)^\| (R\d+|S[0-3]-\d+) \|`).FindAllStringSubmatch(string(page), -1) {
		ids = append(ids, m[1])
	}
	return ids
}

func coverage(tb testing.TB) []runbook.CoverageRow {
	tb.Helper()
	table, err := runbook.ReadTable(runbooks.Files)
	require.NoError(tb, err)
	rows, err := runbook.Coverage(shipped(tb).Books, table)
	require.NoError(tb, err)
	return rows
}

func TestShippedRunbooksAreClean(t *testing.T) {
	t.Parallel()
	for _, f := range shipped(t).Lint(runbook.Context{Now: now(), Rows: coverage(t)}) {
		assert.Failf(t, f.Message, "%s %s %s\n%s", f.Place(), f.Rule, f.Hint, f.Excerpt)
	}
}

// TestEveryRequirementIsInOneClass: none is missing, none of R is planned, and most of R is done by the
// program.
func TestEveryRequirementIsInOneClass(t *testing.T) {
	t.Parallel()
	rows := coverage(t)
	var ids []string
	automated := 0
	for _, r := range rows {
		ids = append(ids, r.ID)
		assert.NotEmpty(t, r.Class, r.ID)
		if r.ID[0] != 'R' {
			continue
		}
		assert.NotEqual(t, runbook.Planned, r.Class, r.ID)
		if r.Class == runbook.Automated {
			automated++
		}
	}
	assert.Equal(t, requirements(t), ids, "each once, in the order of the page")
	assert.GreaterOrEqual(t, automated, 130)
}

// TestClaimsContradict: a requirement in two classes, or in a runbook and in the table, is an error.
func TestClaimsContradict(t *testing.T) {
	t.Parallel()
	parse := func(rows string) *runbook.Runbook {
		book, found := runbook.Parse("a.yaml", []byte(strings.Replace(minimal, "  eta: 2m\n", "  eta: 2m\n  rows: ["+rows+"]\n", 1)))
		require.Empty(t, found)
		return book
	}
	table := func(text string) runbook.Table {
		out, found := runbook.ParseTable("coverage.yaml", []byte("apiVersion: sbx/v1\nkind: Coverage\nentries:\n"+text))
		require.Empty(t, found)
		return out
	}
	_, err := runbook.Coverage([]*runbook.Runbook{parse("R19")}, runbook.Table{})
	require.ErrorContains(t, err, "R19 is elsewhere by my-alert and automated by my-alert/count")
	_, err = runbook.Coverage([]*runbook.Runbook{parse("R5")}, table("  - class: planned\n    where: later\n    rows: [R5]\n"))
	require.ErrorContains(t, err, "R5 is in coverage.yaml, and my-alert claims it already")
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
