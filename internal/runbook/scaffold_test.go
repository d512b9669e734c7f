package runbook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/runbook"
)

// TestANewRunbookIsClean, for an alert of sbx, of another system, and for none.
func TestANewRunbookIsClean(t *testing.T) {
	t.Parallel()
	for _, alert := range []string{"", "create_failing", "High Latency: prod #1"} {
		text, err := runbook.New("high-latency", "", "Team: A #1", alert, now())
		require.NoError(t, err)
		assert.Empty(t, found(t, text), text)
		book, _ := runbook.Parse("x.yaml", []byte(text))
		assert.Equal(t, "High latency", book.Metadata.Title)
		if alert != "" {
			assert.Equal(t, []string{alert}, book.AlertNames())
		}
	}
	_, err := runbook.New("High Latency", "", "A", "", now())
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}

const page = "# Latency: high\n\nIt is slow.\n\n## Impact\n\nUsers wait # long.\n\n## Diagnosis\n\nLook at it:\n\n```sh\n# a comment\n\n  cat <<EOF\nkubectl get pods -o 'x: y' {{.ID}}\n```\n\n" +
	"### 1. Ask\n\n- what?\n-\tsince when?\n\n### 1. Ask\n\n~~~\n```\n~~~\n\n## Verification\n\nIt is fast {{ again }}.\n\n## Empty\n"

// TestImport: headings become manual steps, code stays what it is, and the result is clean.
func TestImport(t *testing.T) {
	t.Parallel()
	text, err := runbook.Import("latency.md", "latency", page, now())
	require.NoError(t, err)
	assert.Empty(t, found(t, text), text)
	book, _ := runbook.Parse("x.yaml", []byte(text))
	assert.Equal(t, "Latency: high", book.Metadata.Title)
	assert.Equal(t, "It is slow.", book.Spec.Meaning)
	assert.Equal(t, "Users wait # long.", book.Spec.Impact)
	require.Len(t, book.Spec.Steps, 3)
	assert.Equal(t, "Look at it:\n\n```sh\n# a comment\n\n  cat <<EOF\nkubectl get pods -o 'x: y' {{.ID}}\n```", book.Spec.Steps[0].Manual, "as it was written")
	assert.Equal(t, "ask", string(book.Spec.Steps[1].ID))
	assert.Equal(t, "- what?\n-    since when?", book.Spec.Steps[1].Manual)
	assert.Equal(t, "ask-2", string(book.Spec.Steps[2].ID))
	assert.Equal(t, "~~~\n```\n~~~", book.Spec.Steps[2].Manual)
	require.Len(t, book.Spec.Verification, 1)
	assert.Equal(t, "It is fast { { again }}.", book.Spec.Verification[0].Manual)
}

func TestImportRefusesAnOpenFence(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"open":             {"# A\n\n## B\n\n```sh\nsbx ls\n\n## C\n", "a.md:5:1: a block of code begins here and is never closed"},
		"closed by less":   {"# A\n````\nx\n```\n", "a.md:2:1: a block of code begins here"},
		"closed by others": {"# A\n```\nx\n~~~\n", "a.md:2:1: a block of code begins here"},
		"no text":          {"# A\n\n## B\n", "a.md: it has no heading with a text below it"},
		"nothing":          {"", "a.md: it has no heading"},
	} {
		_, err := runbook.Import("a.md", "a", tc.text, now())
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), tc.want, name)
	}
}

// FuzzImport: what is imported can be read.
func FuzzImport(f *testing.F) {
	f.Add(page)
	f.Add("# \n\n## {{ x\n\n: |\n---\n\t- ? a\n")
	f.Fuzz(func(t *testing.T, markdown string) {
		text, err := runbook.Import("a.md", "a", markdown, now())
		if err != nil {
			return
		}
		_, list := runbook.Parse("a.yaml", []byte(text))
		assert.Empty(t, list, "%s", strings.ToValidUTF8(text, "?"))
	})
}
