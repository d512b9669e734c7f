package commands

import (
	"fmt"
	"slices"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// ownershipChecks say of each undecided profile what cleanup never ends, by its newest
// recorded run; a profile without any such run has a note.
func (d *Deps) ownershipChecks(c *config.Config, runs []cron.Run) []views.CheckRow {
	var rows []views.CheckRow
	runs = slices.DeleteFunc(slices.Clone(runs), func(r cron.Run) bool { return r.Layer != cron.Stuck && r.Layer != cron.Age })
	for _, name := range ops.Undecided(c) {
		row := views.ToolCheck("ownership", sandbox.True, "cleanup ends only what has the label "+sandbox.LabelOwner+": this profile switched itself on", d.OwnHint([]string{name})).Inform()
		if n := cron.Unowned(runs, name); n > 0 {
			row = views.ToolCheck("ownership", sandbox.False, fmt.Sprintf("the last cleanup left %d stuck because nobody owns them", n), d.OwnHint([]string{name}))
			row.Minor = true
		}
		row.Provider = name
		rows = append(rows, row)
	}
	return rows
}
