package views

import (
	"strings"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// AbilityColumns are those of `sbx providers`.
func AbilityColumns() []output.Column[ops.ProviderAbilities] {
	type row = ops.ProviderAbilities
	return []output.Column[row]{
		{Name: "provider", Value: func(r row) any { return r.Provider }},
		{Name: "provider_type", Head: "TYPE", Value: func(r row) any { return r.ProviderType }},
		{Name: "abilities", Value: func(r row) any { return abilityFields(r) }, Text: abilityWords},
		{Name: "account", Value: func(r row) any { return r.Account }},
	}
}

func abilityFields(r ops.ProviderAbilities) output.Fields {
	fields := make(output.Fields, len(r.Abilities))
	for i, a := range r.Abilities {
		fields[i] = output.Field{Key: a.Name, Value: output.Fields{{Key: "has", Value: a.Has}, {Key: "reason", Value: a.Reason}}}
	}
	return fields
}

func abilityWords(r ops.ProviderAbilities) string {
	var has []string
	for _, a := range r.Abilities {
		if a.Has {
			has = append(has, a.Name)
		}
	}
	return strings.Join(has, " ")
}

// AbilityPage has a row for each ability and a column for each provider.
func AbilityPage(s *output.Sheet, rows []ops.ProviderAbilities) {
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
func whyNot(s *output.Sheet, r ops.ProviderAbilities) {
	head := r.Provider
	if r.Account != "" {
		head += " (" + r.Account + ")"
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
