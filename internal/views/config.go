package views

import (
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// SettingItem is one setting of the configuration.
type SettingItem struct {
	Key    string `json:"key" table:""`    // Its name.
	Value  string `json:"value" table:""`  // Its value; a secret is masked.
	Origin string `json:"origin" table:""` // Where the value comes from.
}

// SettingColumns are the columns of a SettingItem.
func SettingColumns() []output.Column[config.Value] {
	return output.Columns(func(v config.Value) SettingItem { return SettingItem{v.Key, v.Value, v.Origin} })
}

// FileItem is one file of the configuration.
type FileItem struct {
	Path  string `json:"path" table:""`       // Its path.
	Role  string `json:"role" table:",whole"` // user or explicit.
	Found bool   `json:"found" table:""`      // True: it is there.
}

// FileColumns are the columns of a FileItem.
func FileColumns() []output.Column[config.File] {
	return output.Columns(func(f config.File) FileItem { return FileItem{f.Path, string(f.Role), f.Found} })
}

// WrittenItem is a file that was written.
type WrittenItem struct {
	Path string `json:"path" table:""` // Its path.
}

// WrittenColumns are the columns of a WrittenItem.
func WrittenColumns() []output.Column[string] {
	return output.Columns(func(path string) WrittenItem { return WrittenItem{path} })
}

// CreatedItem is a new sandbox.
type CreatedItem struct {
	Ref string `json:"ref" table:""` // PROFILE/ID.
}

// CreateColumns are the columns of a CreatedItem.
func CreateColumns() []output.Column[sandbox.Sandbox] {
	return output.Columns(func(s sandbox.Sandbox) CreatedItem { return CreatedItem{s.Ref().String()} })
}

// CronItem is one line of a crontab, or one unit of systemd.
type CronItem struct {
	Layer    string  `json:"layer" table:""`    // The layer.
	Schedule string  `json:"schedule" table:""` // When it runs.
	Command  string  `json:"command" table:""`  // What it runs.
	Unit     *string `json:"unit" table:""`     // The name of the unit; null in a crontab.
}

// CronColumns are the columns of a CronItem.
func CronColumns(plan cron.Plan, systemd bool) []output.Column[cron.Entry] {
	return output.Columns(func(e cron.Entry) CronItem {
		item := CronItem{Layer: string(e.Layer), Schedule: e.Schedule, Command: plan.Command(e)}
		if systemd {
			item.Schedule, item.Unit = e.Calendar, &e.Unit
		}
		return item
	})
}

// VersionItem is this program.
type VersionItem struct {
	Version string `json:"version" table:""` // The version.
	Commit  string `json:"commit" table:""`  // The commit that it was built from.
	Go      string `json:"go" table:""`      // The version of Go.
	OS      string `json:"os" table:""`      // The operating system that it is for.
	Arch    string `json:"arch" table:""`    // The processor that it is for.
}

// VersionColumns are the columns of a VersionItem.
func VersionColumns() []output.Column[ops.Version] {
	return output.Columns(func(v ops.Version) VersionItem { return VersionItem(v) })
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

// OwnChangeItem is what config own has changed.
type OwnChangeItem struct {
	Path      string   `json:"path" table:""`      // The file.
	Providers []string `json:"providers" table:""` // The profiles.
	Owned     string   `json:"owned" table:""`     // What is owned: all, or labels.
	Written   bool     `json:"written" table:""`   // False: with --dry-run nothing was written.
	Diff      []string `json:"diff" table:""`      // The change, line by line.
}

// OwnChangeColumns are the columns of an OwnChangeItem.
func OwnChangeColumns(written bool) []output.Column[config.OwnChange] {
	return output.Columns(func(c config.OwnChange) OwnChangeItem {
		return OwnChangeItem{c.Path, c.Profiles, c.Owned.String(), written && len(c.Diff) > 0, c.Diff}
	})
}

// ShowImport shows what the settings of foreign files are in a configuration of sbx.
func ShowImport(p *output.Printer, schema string, imported config.Imported) error {
	if p.Format.Name() != output.Table || len(p.Columns) > 0 {
		return output.ShowItem(p, output.ItemSpec[config.Imported]{Schema: schema, Columns: ImportColumns()}, imported)
	}
	for line := range strings.Lines(importText(imported)) {
		if err := p.Line(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// importText is a text that can be a file: what is no setting is a comment.
func importText(i config.Imported) string {
	if i.Path() != "" {
		return "# wrote " + i.Path() + "\n" + i.Block
	}
	return i.Block
}

// ImportItem is what config import has read, and what it means here.
type ImportItem struct {
	Path     string          `json:"path" table:""`    // The file that was written; empty without --write.
	Written  bool            `json:"written" table:""` // False: nothing was written.
	Settings []ImportSetting `json:"settings"`         // What is imported.
	Ignored  []ImportIgnored `json:"ignored"`          // What is not imported, never with its value.
	Block    string          `json:"block" table:""`   // The same as text of a configuration.
}

// ImportSetting is one imported setting.
type ImportSetting struct {
	Key   string `json:"key"`   // The setting, such as run.memory.
	Value string `json:"value"` // Its value; of a secret the variable that holds it.
	From  string `json:"from"`  // File, line and key of the source.
	Note  string `json:"note"`  // Why it is only a comment; empty where it is set.
}

// ImportIgnored is one setting that is not imported.
type ImportIgnored struct {
	Key    string `json:"key"`    // Its key; empty for a line that is no setting.
	From   string `json:"from"`   // File and line.
	Reason string `json:"reason"` // Why not.
}

// ImportColumns are the columns of an ImportItem.
func ImportColumns() []output.Column[config.Imported] {
	return output.Columns(func(i config.Imported) ImportItem {
		item := ImportItem{Path: i.Path(), Written: i.Path() != "", Settings: []ImportSetting{}, Ignored: []ImportIgnored{}, Block: i.Block}
		for _, s := range i.Settings {
			item.Settings = append(item.Settings, ImportSetting(s))
		}
		for _, s := range i.Ignored {
			item.Ignored = append(item.Ignored, ImportIgnored(s))
		}
		return item
	})
}

// ProviderItem is one configured provider.
type ProviderItem struct {
	Provider     string                      `json:"provider" table:""`          // The profile.
	ProviderType string                      `json:"provider_type" table:"TYPE"` // Its type.
	Abilities    output.Ordered[AbilityItem] `json:"abilities" table:""`         // What it can do, by the name of the ability.
	Account      string                      `json:"account" table:""`           // The account, as far as it is known.
}

// AbilityItem says whether a provider can do something.
type AbilityItem struct {
	Has    bool   `json:"has"`    // True: it can.
	Reason string `json:"reason"` // Why not.
}

// AbilityColumns are the columns of a ProviderItem.
func AbilityColumns() []output.Column[ops.ProviderAbilities] {
	return output.Columns(providerItem, output.Column[ops.ProviderAbilities]{Name: "abilities", Text: abilityWords})
}

func providerItem(r ops.ProviderAbilities) ProviderItem {
	item := ProviderItem{Provider: r.Provider, ProviderType: r.ProviderType, Account: r.Account}
	for _, a := range r.Abilities {
		item.Abilities = append(item.Abilities, output.Field{Key: a.Name, Value: AbilityItem{a.Has, a.Reason}})
	}
	return item
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
