package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

const providersSchema = "sbx.providers/v1"

func newProviders(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "providers",
		GroupID: groupTool,
		Short:   "Show what each configured provider supports",
		Long: "Show what each configured provider supports. It makes no request.\n\n" +
			"A verb that a provider does not support exits 9 and names those that do.",
		Example: "sbx providers\nsbx providers --provider local -o json\nsbx providers -o name",
		Args:    d.noWords("--provider names the profiles to show"),
	}
	doc := document{schema: providersSchema, shape: output.ShapeList, columns: output.Names(views.AbilityColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		rows, err := ops.Abilities(ctx, d.Env, d.Globals.Providers)
		if err != nil {
			return err
		}
		return views.ShowRows(p, output.ListSpec[ops.ProviderAbilities]{
			Schema: providersSchema, Columns: views.AbilityColumns(), Human: views.AbilityPage, Empty: "no providers are configured",
		}, rows)
	})
}
