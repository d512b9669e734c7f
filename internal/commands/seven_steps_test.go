package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/runbook"
	"sbx/internal/triage"
	"sbx/internal/views"
	"sbx/runbooks"
)

// TestOneNumberingEverywhere: the seven steps have one number and one word on every surface. The table that it makes is
// what each of them prints.
func TestOneNumberingEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop())
		b.configure(t, "providers:\n  prod: {type: local}\n")
		catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(t.Context())
		require.NoError(t, err)
		book, err := catalog.Find("sandbox-stuck")
		require.NoError(t, err)
		b.tty, b.width, b.stdin = true, 120, "1\n\n"
		surfaces := []struct{ name, text string }{
			{"page", views.RunbookMarkdown(book)},
			{"runbook show", b.run(t, "runbook show sandbox-stuck").stdout},
			{"diagnose", b.run(t, "diagnose").stdout},
			{"dashboard", b.run(t, "dashboard --once").stdout},
			{"runbook run", b.run(t, "runbook run sandbox-stuck").stdout},
			{"incident report", b.run(t, "incident report").stdout},
		}
		table := &strings.Builder{}
		for _, s := range triage.StuckSteps() {
			shown := regexp.MustCompile(`(?:^|\D)` + s.Number + `([a-z]\d*)? +` + s.Word + `\b`) // or a part of it
			for _, surface := range surfaces {
				found := shown.FindString(surface.text)
				assert.NotEmpty(t, found, "%s has no %q:\n%s", surface.name, s.Label(), surface.text)
				fmt.Fprintf(table, "%-10s", strings.TrimLeft(strings.Join(strings.Fields(found), " "), "m*|` "))
			}
			table.WriteString("\n")
		}
		t.Log("\n" + table.String())
	})
}
