package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fleet"
	"sbx/internal/output"
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
	doc := document{schema: "sbx.providers/v1", shape: output.ShapeList, columns: output.Names(abilityColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error { return showProviders(ctx, d, p) })
}

func showProviders(ctx context.Context, d *Deps, p *output.Printer) error {
	f, err := d.Whole(ctx)
	if err != nil {
		return err
	}
	if f, err = f.Narrow(d.Globals.Providers); err != nil {
		return err
	}
	return showRows(p, output.ListSpec[fleet.AbilityRow]{
		Schema: "sbx.providers/v1", Columns: abilityColumns(), Human: abilityPage, Empty: "no providers are configured",
	}, f.Abilities())
}

func abilityColumns() []output.Column[fleet.AbilityRow] {
	type row = fleet.AbilityRow
	return []output.Column[row]{
		{Name: "provider", Value: func(r row) any { return r.Provider }},
		{Name: "provider_type", Head: "TYPE", Value: func(r row) any { return r.ProviderType }},
		{Name: "abilities", Value: func(r row) any { return abilityFields(r) }, Text: abilityWords},
		{Name: "account", Value: func(row) any { return "" }}, // nobody has one yet: `local` is this machine
	}
}

func abilityFields(r fleet.AbilityRow) output.Fields {
	fields := make(output.Fields, len(r.Abilities))
	for i, a := range r.Abilities {
		fields[i] = output.Field{Key: a.Name, Value: output.Fields{{Key: "has", Value: a.Has}, {Key: "reason", Value: a.Reason}}}
	}
	return fields
}

// abilityWords names what a provider has.
func abilityWords(r fleet.AbilityRow) string {
	var has []string
	for _, a := range r.Abilities {
		if a.Has {
			has = append(has, a.Name)
		}
	}
	return strings.Join(has, " ")
}

// abilityPage has a row for each ability and a column for each provider.
func abilityPage(s *output.Sheet, rows []fleet.AbilityRow) {
	headers, types := []string{"ability"}, []any{"(type)"}
	for _, r := range rows {
		headers, types = append(headers, r.Provider), append(types, r.ProviderType)
	}
	lines := [][]any{types}
	for i, a := range rows[0].Abilities {
		line := []any{a.Name}
		for _, r := range rows {
			if r.Abilities[i].Has {
				line = append(line, "yes")
			} else {
				line = append(line, "no")
			}
		}
		lines = append(lines, line)
	}
	s.Table(headers, lines)
}
