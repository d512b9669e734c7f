package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newProviders(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "providers",
		GroupID: groupTool,
		Short:   "Show what each configured provider can do",
		Long: "Show what each configured provider can do. Nothing is called for it.\n\n" +
			"A verb whose ability is missing exits 9 and names the providers that have it.",
		Example: "sbx providers\nsbx providers --provider local -o json\nsbx providers -o name",
		Args:    usageArgs(noArgs, "--provider names the profiles to show"),
	}
	doc := document{schema: "sbx.providers/v1", shape: output.ShapeList, columns: output.Names(views.AbilityColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error { return showProviders(ctx, d, p) })
}

func showProviders(ctx context.Context, d *Deps, p *output.Printer) error {
	f, err := d.Only(ctx, d.Globals.Providers...) // also those that `use` leaves out
	if err != nil {
		return err
	}
	rows := d.accounted(f.Abilities())
	return views.ShowRows(p, output.ListSpec[views.AbilityRow]{
		Schema: "sbx.providers/v1", Columns: views.AbilityColumns(), Human: views.AbilityPage, Empty: "no providers are configured",
	}, rows)
}

// accounted adds whose each profile is, as the configuration tells.
func (d *Deps) accounted(rows []fleet.AbilityRow) []views.AbilityRow {
	all := make([]views.AbilityRow, 0, len(rows))
	c, err := d.Config()
	for _, r := range rows {
		row := views.AbilityRow{AbilityRow: r}
		if err == nil {
			profile, _ := c.Find(r.Provider)
			row.Account = profile.Account
		}
		all = append(all, row)
	}
	return all
}
