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
	f, err := d.Only(ctx, d.Globals.Providers...) // also those that `use` leaves out
	if err != nil {
		return err
	}
	rows := d.accounted(f.Abilities())
	return showRows(p, output.ListSpec[abilityRow]{
		Schema: "sbx.providers/v1", Columns: abilityColumns(), Human: abilityPage, Empty: "no providers are configured",
	}, rows)
}

// accounted adds whose each profile is, as the configuration tells.
func (d *Deps) accounted(rows []fleet.AbilityRow) []abilityRow {
	all := make([]abilityRow, 0, len(rows))
	c, err := d.Config()
	for _, r := range rows {
		row := abilityRow{AbilityRow: r}
		if err == nil {
			profile, _ := c.Find(r.Provider)
			row.account = profile.Account
		}
		all = append(all, row)
	}
	return all
}

// abilityRow is what one profile can do, and whose it is.
type abilityRow struct {
	fleet.AbilityRow
	account string
}

func abilityColumns() []output.Column[abilityRow] {
	type row = abilityRow
	return []output.Column[row]{
		{Name: "provider", Value: func(r row) any { return r.Provider }},
		{Name: "provider_type", Head: "TYPE", Value: func(r row) any { return r.ProviderType }},
		{Name: "abilities", Value: func(r row) any { return abilityFields(r) }, Text: abilityWords},
		{Name: "account", Value: func(r row) any { return r.account }},
	}
}

func abilityFields(r abilityRow) output.Fields {
	fields := make(output.Fields, len(r.Abilities))
	for i, a := range r.Abilities {
		fields[i] = output.Field{Key: a.Name, Value: output.Fields{{Key: "has", Value: a.Has}, {Key: "reason", Value: a.Reason}}}
	}
	return fields
}

// abilityWords names what a provider has.
func abilityWords(r abilityRow) string {
	var has []string
	for _, a := range r.Abilities {
		if a.Has {
			has = append(has, a.Name)
		}
	}
	return strings.Join(has, " ")
}

// abilityPage has a row for each ability and a column for each provider.
func abilityPage(s *output.Sheet, rows []abilityRow) {
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
	for _, r := range rows {
		whyNot(s, r)
	}
}

// whyNot lists the reasons of one profile, where it knows any.
func whyNot(s *output.Sheet, r abilityRow) {
	head := r.Provider
	if r.account != "" {
		head += " (" + r.account + ")"
	}
	began := false
	for _, a := range r.Abilities {
		_, reason, known := strings.Cut(a.Reason, ": ")
		if a.Has || !known {
			continue
		}
		if !began {
			s.Section(head)
			began = true
		}
		s.Field(a.Name, reason)
	}
}
