package cli_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cli"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// referencePage is docs/REFERENCE.md: what scripts and people look up.
func referencePage() string {
	return "# Exit codes and patterns in logs\n\nGenerated from the program (`make docs`).\n" + exitCodes() + logPatterns()
}

// exitCodes are made from the table that decides every exit of the process.
func exitCodes() string {
	var b strings.Builder
	b.WriteString("\n## Exit codes\n\n" +
		"`sbx help exit-codes` prints the same. Codes and kinds are only ever added: treat an\n" +
		"unknown code that is not 0 as a failure.\n\n" +
		"| code | kind | meaning to a script or a cron line | the same call may succeed later |\n|---:|---|---|---|\n")
	for _, row := range fault.Table() {
		later := map[bool]string{true: "yes", false: "no"}[row.Retryable]
		if row.Kind == fault.KindNone {
			later = "-"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", row.Code, code(string(row.Kind)), row.Meaning, later)
	}
	b.WriteString("\nThe kind is also in the `errors` of every JSON document. A command line that is refused\n" +
		"before there is one (a wrong flag, a file of tasks with mistakes) writes the error to\n" +
		"stderr, as `{\"schema\":\"sbx.error/v1\",\"error\":{...},\"errors\":[...],\"exit_code\":2}`.\n\n" +
		"`sbx exec` gives the program's own code, 128+n for a death by signal n. A check\n" +
		"with `-o nagios` gives 0, 1, 2 or 3 as monitoring plugins do, also when it is interrupted.\n")
	return b.String()
}

// typesOfProviders is the part of docs/PROVIDERS.md with what each type can do, found by
// asking an opened provider, and the settings that it declares.
func typesOfProviders(t *testing.T) string {
	t.Helper()
	types := cli.Types()
	opened := make([]providers.Named, len(types))
	header, rule := "| ability |", "|---|"
	for i, kind := range types {
		opened[i] = open(t, kind)
		header, rule = header+" `"+kind.Name+"` |", rule+"---|"
	}
	var b strings.Builder
	b.WriteString("## Abilities\n\n" + header + "\n" + rule + "\n")
	for _, ability := range providers.Abilities() {
		b.WriteString("| " + ability.Name + " |")
		for _, p := range opened {
			word := "-"
			if ability.Has(p) {
				word = "yes"
			}
			b.WriteString(" " + word + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nEvery provider can list sandboxes, read one and terminate one. `omoios` can do none of\n" +
		"these: it is a source that adds its abilities to the profile that it is attached to.\n" +
		factsSection(types) +
		"\n## Signs of activity\n\n" +
		"What shows that a sandbox is active, and which activity it misses. Only a sign that misses\n" +
		"nothing proves silence; without one, activity is unknown, and the sandbox is kept\n" +
		"(`--ignore-activity`, or `activity: age-only` in the profile, uses age only). It is also\n" +
		"kept while a configured source does not answer.\n\n" +
		"| type | sign | shows | misses |\n|---|---|---|---|\n")
	for _, kind := range types {
		for _, sign := range kind.LifeSigns {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", kind.Name, cmp.Or(sign.Ability, "the record"), sign.Shows, cmp.Or(sign.Misses, "nothing"))
		}
	}
	exitWordsSection(&b, types)
	labelsSection(&b, types)
	b.WriteString("\n## Settings of every provider\n\n")
	settingsTable(&b, providers.CommonOptions())
	b.WriteString("\nA secret may be in the file under its name, be named there as a variable\n" +
		"(`token_env: NAME`), or be printed by a program (`token_command: [pass, show, prod]`),\n" +
		"which runs when the profile is opened.\n")
	for _, kind := range types {
		writeSettings(&b, kind)
	}
	return b.String()
}

// factsSection shows what differs between types and decides how their sandboxes are
// treated.
func factsSection(types []providers.Type) string {
	is := func(of func(providers.Facts) bool) func(providers.Facts) string {
		return func(f providers.Facts) string { return map[bool]string{true: "yes", false: "-"}[of(f)] }
	}
	var b strings.Builder
	b.WriteString("\n## Facts\n\n" +
		"The differences between types that decide how their sandboxes are treated. A type\n" +
		"declares its facts (`providers.Facts`); no rule of sbx depends on the name of a type.\n\n| fact |")
	for _, kind := range types {
		b.WriteString(" `" + kind.Name + "` |")
	}
	b.WriteString("\n" + strings.Repeat("|---", len(types)+1) + "|\n")
	for _, row := range []struct {
		fact string
		cell func(providers.Facts) string
	}{
		{"its sandboxes are on the host that created them, and no other host sees them", is(func(f providers.Facts) bool { return f.HostBound })},
		{"they are processes of that host and can read its files", is(func(f providers.Facts) bool { return f.HostProcesses })},
		{"they are kept in the state directory of sbx", is(func(f providers.Facts) bool { return f.InStateDir })},
		{"the profile sets the default size; images and snapshots do not apply", is(func(f providers.Facts) bool { return f.SizedByProfile })},
		{"all of them are yours without `owned`; of the others what has the label `sbx/owner`", is(func(f providers.Facts) bool { return f.OwnsAll })},
		{"the default profile of a create", is(func(f providers.Facts) bool { return f.LaunchDefault })},
		{"an end without `--delete` keeps", func(f providers.Facts) string { return string(f.EndKeeps) }},
		{"after a lost answer to a create, its sandbox may still appear for", func(f providers.Facts) string { return sandbox.FormatDuration(f.SettleTime()) }},
	} {
		b.WriteString("| " + row.fact + " |")
		for _, kind := range types {
			cell := "-"
			if kind.Attach == nil {
				cell = row.cell(kind.Facts)
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nWhat remains after an end: `nothing`, so that `--delete` has no effect; `record`, a record\n" +
		"and logs, which cost nothing; or `state`, a disk, a snapshot or a name, which may cost until\n" +
		"`--delete`: a task therefore deletes it with its sandbox.\n")
	return b.String()
}

// exitWordsSection shows what the types say of an end where others give an exit code.
func exitWordsSection(b *strings.Builder, types []providers.Type) {
	b.WriteString("\n## Words for an exit\n\n" +
		"What a provider reports instead of an exit code. A word has a meaning only at its own\n" +
		"provider; signals and exit codes mean the same everywhere. None proves that memory ran\n" +
		"out.\n\n| type | word | class | what it proves |\n|---|---|---|---|\n")
	for _, kind := range types {
		for _, w := range kind.ExitWords {
			fmt.Fprintf(b, "| `%s` | `%s` | `%s` | %s |\n", kind.Name, w.Raw, w.Class, w.Says)
		}
	}
}

// TestEveryTypeStatesItsFacts, and none that contradict each other.
func TestEveryTypeStatesItsFacts(t *testing.T) {
	t.Parallel()
	for _, kind := range cli.Types() {
		if kind.Attach != nil {
			assert.Equal(t, providers.Facts{}, kind.Facts, "%s has no sandboxes", kind.Name)
			continue
		}
		assert.Contains(t, []providers.EndKeeps{providers.EndKeepsNothing, providers.EndKeepsRecord, providers.EndKeepsState}, kind.EndKeeps, kind.Name)
		if kind.HostProcesses || kind.InStateDir {
			assert.True(t, kind.HostBound, "%s: what is on this machine no other host sees", kind.Name)
		}
		if kind.LaunchDefault {
			assert.True(t, kind.Always, "%s: a default has to be there", kind.Name)
		}
	}
}

// labelsSection says which labels sbx reads, and where somebody else writes them.
func labelsSection(b *strings.Builder, types []providers.Type) {
	b.WriteString("\n## Labels\n\n" +
		"`sbx create` and `sbx run` write `" + sandbox.LabelOwner + "`, `" + sandbox.LabelTask + "` and `" + sandbox.LabelAgentType + "`. Without sbx you can write the\n" +
		"same labels, and `" + sandbox.LabelKeep + "` with `true` or a time until which nothing may terminate it\n" +
		"(`sbx help labels`). Without `owned` in its profile, in a file or by its environment variable,\n" +
		"cleanup terminates only what has `" + sandbox.LabelOwner + "`; `sbx config own` changes that.\n\n" +
		"| type | written in |\n|---|---|\n")
	for _, kind := range types {
		if kind.Attach == nil {
			fmt.Fprintf(b, "| `%s` | %s |\n", kind.Name, kind.LabelsIn)
		}
	}
	b.WriteString("\n| in `metadata` | sbx's own | also read | what it is |\n|---|---|---|---|\n")
	for _, m := range config.MetadataRows() {
		fmt.Fprintf(b, "| `%s` | `%s` | `%s` | %s |\n", m.Name, m.Own, m.Default, m.Help)
	}
	b.WriteString("\nOf several keys the first that exists counts. `metadata` is set for all profiles at the top\n" +
		"of the configuration, or in one profile.\n")
}

// TestEveryTypeSaysWhereLabelsAre, and one that keeps none says so.
func TestEveryTypeSaysWhereLabelsAre(t *testing.T) {
	t.Parallel()
	for _, kind := range cli.Types() {
		if kind.Attach == nil {
			assert.NotEmpty(t, kind.LabelsIn, kind.Name)
			assert.Equal(t, kind.NoLabels, strings.HasPrefix(kind.LabelsIn, "nowhere"), kind.Name)
		}
	}
}

// TestTypesSayWhatTheyCan before they are opened as they do afterwards.
func TestTypesSayWhatTheyCan(t *testing.T) {
	t.Parallel()
	can := func(named providers.Named, ability string) bool {
		return slices.ContainsFunc(providers.Abilities(), func(a providers.Ability) bool { return a.Name == ability && a.Has(named) })
	}
	for _, kind := range cli.Types() {
		opened := open(t, kind)
		assert.Equal(t, can(opened, "quota"), kind.TellsQuota, kind.Name)
		assert.Equal(t, can(opened, "cleanup"), kind.Emergency, kind.Name)
		if kind.Attach == nil {
			assert.Equal(t, can(opened, "records"), kind.KeepsRecords, kind.Name)
		}
	}
}

func writeSettings(b *strings.Builder, kind providers.Type) {
	b.WriteString("\n## Settings of `" + kind.Name + "`\n\n" + kind.Help + "\n\n")
	switch {
	case kind.Always:
		b.WriteString("A profile of this type is always there.\n\n")
	case len(kind.SwitchedOn) > 0:
		b.WriteString("`" + strings.Join(kind.SwitchedOn, "`, `") + "` in the environment adds a profile of this type.\n\n")
	}
	if len(kind.Options) == 0 {
		b.WriteString("It has no settings.\n")
		return
	}
	settingsTable(b, kind.Options)
}

func settingsTable(b *strings.Builder, options []providers.Option) {
	b.WriteString("| setting | kind | environment | default | what it does |\n|---|---|---|---|---|\n")
	for _, o := range options {
		help := o.Help
		if o.Secret {
			help += " (secret)"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", o.Name, o.Kind, code(o.Env), code(o.Default), help)
	}
}

// logPatterns are what `sbx logs --patterns` knows.
func logPatterns() string {
	var b strings.Builder
	b.WriteString("\n## Patterns in logs\n\n" +
		"`sbx logs REF --patterns` shows the lines that match one of these; if a line matches\n" +
		"several, the first in this list counts. A pattern is evidence for a cause, not a proof.\n\n" +
		"| pattern | what it means | evidence for | severity |\n|---|---|---|---|\n")
	for _, p := range triage.Patterns() {
		cause := code(string(p.Cause))
		if p.Cause == sandbox.CauseUnknown {
			cause = "-"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", p.ID, p.Say, cause, p.Severity)
	}
	return b.String()
}

// code sets a word as code, and nothing as a dash.
func code(word string) string {
	if word == "" {
		return "-"
	}
	return "`" + word + "`"
}

// anyCluster is a kubeconfig.
const anyCluster = `{clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`

// open opens a provider with its defaults, and with something where it has none.
// It is asked for its abilities only.
func open(t *testing.T, kind providers.Type) providers.Named {
	t.Helper()
	profile := providers.Profile{Name: kind.Name, Type: kind.Name, Settings: map[string]string{}}
	for _, o := range kind.Options {
		profile.Settings[o.Name] = o.Default
		if o.Default == "" && o.Kind == providers.OptionText && (o.Secret || slices.Contains(kind.SwitchedOn, o.Env)) {
			profile.Settings[o.Name] = "not-a-real-one"
		}
		switch o.Name {
		case "host":
			profile.Settings[o.Name] = "tcp://127.0.0.1:1"
		case "kubeconfig":
			profile.Settings[o.Name] = filepath.Join(t.TempDir(), "config")
			require.NoError(t, os.WriteFile(profile.Settings[o.Name], []byte(anyCluster), 0o600))
		}
		if o.Default == "" && strings.HasSuffix(o.Name, "url") {
			profile.Settings[o.Name] = "https://example.com"
		}
	}
	deps := providers.Deps{Now: time.Now, StateDir: t.TempDir(), Version: "test", Notice: func(string) {}, Lookup: os.LookupEnv}
	if kind.Attach != nil {
		s, err := kind.Attach(t.Context(), profile, deps)
		require.NoError(t, err)
		return s
	}
	p, err := kind.Open(t.Context(), profile, deps)
	require.NoError(t, err)
	return p
}
