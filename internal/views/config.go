package views

import (
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// SettingColumns are those of `sbx config explain`.
func SettingColumns() []output.Column[config.Value] {
	return []output.Column[config.Value]{
		{Name: "key", Value: func(v config.Value) any { return v.Key }},
		{Name: "value", Value: func(v config.Value) any { return v.Value }},
		{Name: "origin", Value: func(v config.Value) any { return v.Origin }},
	}
}

// FileColumns are those of `sbx config path`.
func FileColumns() []output.Column[config.File] {
	return []output.Column[config.File]{
		{Name: "path", Value: func(f config.File) any { return f.Path }},
		{Name: "role", Value: func(f config.File) any { return f.Role }},
		{Name: "found", Value: func(f config.File) any { return f.Found }},
	}
}

// WrittenColumns are those of a configuration file that was written.
func WrittenColumns() []output.Column[string] {
	return []output.Column[string]{{Name: "path", Value: func(path string) any { return path }}}
}

// CreateColumns is the item of CLI.md: a REF and nothing else.
func CreateColumns() []output.Column[sandbox.Sandbox] {
	return []output.Column[sandbox.Sandbox]{
		{Name: "ref", Value: func(s sandbox.Sandbox) any { return s.Ref().String() }},
	}
}

// CronColumns are those of `sbx cron print`.
func CronColumns(plan cron.Plan, systemd bool) []output.Column[cron.Entry] {
	return []output.Column[cron.Entry]{
		{Name: "layer", Value: func(e cron.Entry) any { return string(e.Layer) }},
		{Name: "schedule", Value: func(e cron.Entry) any {
			if systemd {
				return e.Calendar
			}
			return e.Schedule
		}},
		{Name: "command", Value: func(e cron.Entry) any { return plan.Command(e) }},
		{Name: "unit", Value: func(e cron.Entry) any {
			if systemd {
				return e.Unit
			}
			return nil
		}},
	}
}

// VersionColumns are those of `sbx version`.
func VersionColumns() []output.Column[ops.Version] {
	return []output.Column[ops.Version]{
		{Name: "version", Value: func(v ops.Version) any { return v.Version }},
		{Name: "commit", Value: func(v ops.Version) any { return v.Commit }},
		{Name: "go", Value: func(v ops.Version) any { return v.Go }},
		{Name: "os", Value: func(v ops.Version) any { return v.OS }},
		{Name: "arch", Value: func(v ops.Version) any { return v.Arch }},
	}
}

// ShowOwnChange shows which sandboxes of a profile the configuration calls ours, and what is
// written for it.
func ShowOwnChange(p *output.Printer, schema string, change config.OwnChange, written bool) error {
	return output.ShowItem(p, output.ItemSpec[config.OwnChange]{
		Schema: schema, Columns: OwnChangeColumns(written), Human: func(s *output.Sheet, c config.OwnChange) { ownChangePage(s, c, written) },
	}, change)
}

func ownChangePage(s *output.Sheet, c config.OwnChange, written bool) {
	switch {
	case len(c.Diff) == 0:
		s.Text(c.Path + " says so already: of " + strings.Join(c.Profiles, ", ") + " yours are: " + c.Owned.String() + "\n")
		return
	case !written:
		s.Text("Nothing was written; this would change in " + c.Path + ":\n")
	default:
		s.Text("wrote " + c.Path + ":\n")
	}
	for _, line := range c.Diff {
		s.Text(line + "\n")
	}
}

// OwnChangeColumns are those of `config own`.
func OwnChangeColumns(written bool) []output.Column[config.OwnChange] {
	type row = config.OwnChange
	return []output.Column[row]{
		{Name: "path", Value: func(c row) any { return c.Path }},
		{Name: "providers", Value: func(c row) any { return c.Profiles }},
		{Name: "owned", Value: func(c row) any { return c.Owned.String() }},
		{Name: "written", Value: func(c row) any { return written && len(c.Diff) > 0 }},
		{Name: "diff", Value: func(c row) any { return c.Diff }},
	}
}

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
