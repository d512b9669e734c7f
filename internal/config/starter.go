package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Init writes a starter file with every setting as a comment, for the operator
// alone (0600), and returns its path; "" means the user file. With a kind it has a profile of
// that type. A file that is there already is fault.KindRefused, with the lines to add to it.
func Init(in Input, path, kind string) (string, error) {
	profile, err := starterLines(in.Types, kind)
	if err != nil {
		return "", err
	}
	if path == "" {
		path = in.userFile()
	}
	if path == "" {
		return "", fault.Usage("there is no home directory for a user file").WithHint("name the file to write")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(in.workingDirectory(), path)
	}
	text := strings.Replace(Starter(in.Types), "\n#providers:\n", "\n"+profile, 1)
	switch err := createFile(path, []byte(text)); {
	case errors.Is(err, fs.ErrExist) && kind != "":
		refused := fault.New(fault.KindRefused, "%s exists already and was not changed; these lines add the profile", path).
			WithHint("where the file has `providers:` already, add those below it")
		refused.Excerpt = strings.Split(strings.TrimSuffix(profile, "\n"), "\n")
		return "", refused
	case errors.Is(err, fs.ErrExist):
		return "", fault.New(fault.KindRefused, "%s exists already and was not changed", path).WithHint("edit it, or move it away first")
	case err != nil:
		return "", fault.New(fault.KindUnknown, "the file cannot be written: %w", err).WithHint("name another path")
	}
	return path, nil
}

// starterLines are the lines of a profile of a type, or the comment in their place.
func starterLines(types []providers.Type, kind string) (string, error) {
	if kind == "" {
		return "#providers:\n", nil
	}
	t, known := findType(types, kind)
	switch {
	case !known:
		return "", fault.Usage("--type: no provider type %q", kind).WithHint("%s", fault.Meant(kind, typeNames(types)))
	case t.Attach != nil:
		return "", fault.Usage("--type: a profile of %s is attached to another profile, which only you can name", kind).
			WithHint("without --type the file has its settings as comments")
	}
	var lines strings.Builder
	lines.WriteString("providers:\n  " + kind + ":\n    type: " + kind + "\n")
	for _, o := range t.Options {
		if o.Secret && o.Env != "" {
			lines.WriteString("    " + o.Name + suffixVariable + ": " + o.Env + "\n")
		}
	}
	return lines.String(), nil
}

// Starter is the text of a file with every setting as a comment. Prose has one
// space after the #; a setting has none, or the indentation it needs.
func Starter(types []providers.Type) string {
	var b strings.Builder
	b.WriteString(`# Configuration of sbx. Everything here is optional: without this file the
# defaults hold. Remove a # to set a value; an unknown key is an error.
# "sbx config explain" shows every value and where it comes from.

# Provider profiles: a name of your own, its type and the settings of that type.
# owned says which sandboxes cleanup may terminate; "sbx config own" writes it. Without it only those with the
# label ` + sandbox.LabelOwner + ` are yours (of local all), and an unattended cleanup that skips others for this reason exits 11.
#providers:
`)
	for _, t := range withCommon(types) {
		starterProfile(&b, t)
	}
	b.WriteString(`
# The profiles that commands use; without this line all.
#use: [` + starterProfiles(types)[0] + `]

# Where "sbx create" goes unless --provider names another profile.
#launch: ` + starterProfiles(types)[0] + `

# Profiles where bulk verbs need --production NAME.
#production: []

# Sandboxes that bulk verbs never terminate: by label, or by id or profile/id.
#protect:
#  labels: {sbx/keep: "true"}
#  ids: []

# The labels (metadata, tags) that name task, agent type and owner: the first one found counts,
# after those of sbx itself (` + "sbx/task, sbx/agent-type, sbx/owner" + `). A profile may say it for itself.
#metadata:
`)
	for _, m := range labelMeanings() {
		fmt.Fprintf(&b, "#  %s: [%s] # %s\n", m.name, strings.Join(m.fallback, ", "), m.help)
	}
	b.WriteString(`
# Where sbx stores its records: empty is a file in the state directory,
# postgres://... is a database that several operators and hosts share. The password
# can stand in SBX_STORE_URL, PGPASSWORD or ~/.pgpass instead.
#store:
#  url: ""

# Limits of one command.
#limits:
`)
	starterSettings(&b, limitSettings())
	starterUnattended(&b)
	starterThresholds(&b)
	b.WriteString("\n# How tasks are launched. Each attempt has a sandbox of its own.\n#run:\n")
	starterSettings(&b, runSettings())
	b.WriteString("\n# Where unattended runs report trouble. Secrets are not written here but in the\n# environment variables that are named.\n#notify:\n")
	for _, n := range notifySettings() {
		fmt.Fprintf(&b, "#  %s: %s # %s\n", n.name, n.sample, n.help)
	}
	for _, t := range routeTables() {
		fmt.Fprintf(&b, "#  %s: %s # %s\n", t.name, t.sample, t.help)
	}
	b.WriteString("\n# Keys of the dashboard, by their actions: `sbx dashboard --help` names them.\n#keys:\n#  pause: space\n\n# off: the mouse selects text in the dashboard, and chooses nothing.\n#mouse: on\n")
	return b.String()
}

func starterUnattended(b *strings.Builder) {
	b.WriteString("\n# true: without a terminal, as from cron, a cleanup acts within its limits as with --yes; " + EnvUnattended + "=1 in a\n" +
		"# crontab says the same.\n#cleanup:\n#  unattended: false\n")
}

func starterSettings(b *strings.Builder, list []setting) {
	for _, s := range list {
		fmt.Fprintf(b, "#  %s: %s # %s\n", s.name, cmp.Or(s.fallback, s.sample), s.help)
	}
}

// starterProfiles are the names of the profiles in the starter file.
func starterProfiles(types []providers.Type) []string {
	names := []string{}
	for _, t := range types {
		names = append(names, t.Name)
	}
	return append(names, "local")
}

func starterProfile(b *strings.Builder, t providers.Type) {
	fmt.Fprintf(b, "#  %s: # %s\n#    type: %s\n", t.Name, t.Help, t.Name)
	switch {
	case t.Attach != nil:
	case t.NoLabels:
		b.WriteString("#    owned: all # it keeps no labels: without this nothing is yours\n")
	default:
		b.WriteString("#    owned: all # or {labels: {key: value}}\n")
	}
	for _, o := range t.Options {
		name, text := o.Name, o.Default
		if text == "" {
			text = sampleOfKind(o.Kind)
		}
		if o.Secret {
			name, text = o.Name+suffixVariable, variableOf(o.Env)
		}
		fmt.Fprintf(b, "#    %s: %s # %s\n", name, text, o.Help)
	}
}

// variableOf gives the variable of a secret, or an example of one.
func variableOf(env string) string {
	if env == "" {
		return "MY_TOKEN"
	}
	return env
}
