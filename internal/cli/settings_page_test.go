package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
)

// launchPage is docs/LAUNCHING.md: how tasks are launched, made from the tables
// that read it. A flag is named once a verb has it.
func launchPage() string {
	var b strings.Builder
	b.WriteString("# Settings of task launch\n\n" +
		"Generated from the tables that read them (`make docs`). They stand in the `run:` block\n" +
		"of the configuration. The strongest first: flag, environment variable, project file,\n" +
		"user file, default. `sbx config explain` shows what holds and who said so.\n\n" +
		"| setting | flag | default | takes | a project file may, without trust | what it is |\n|---|---|---|---|---|---|\n")
	for _, s := range config.RunSettingRows() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, flagOf(s.Flag), code(s.Default), s.Takes, s.Project, s.Help)
	}
	fmt.Fprintf(&b, "\nDurations have units (`90s`, `10m`), sizes are 1024-based (`512M`, `4G`). Where\n"+
		"nobody set a size, a project file needs trust to set one: whether it is lower than\n"+
		"the provider's own choice is not known. Snapshot and image count for services; where\n"+
		"both are set the snapshot is taken. The `template` of a profile is that of E2B and\n"+
		"Novita.\n\n"+
		"Between attempts `retry_delay` passes, then each time %d times as long, up to\n"+
		"%d %% longer or shorter, never more than %.0f s.\n", config.RetryFactor, config.RetrySpread, config.RetryCap.Seconds())
	contradictions(&b)
	switches(&b)
	variables(&b)
	return b.String()
}

func contradictions(b *strings.Builder) {
	b.WriteString("\n## Limits that cancel each other\n\n" +
		"- `command_timeout` longer than `attempt_timeout`\n" +
		"- `deadline` shorter than all attempts with the longest waits between them\n" +
		"- `inactivity` no shorter than `command_timeout`, while silence counts\n\n" +
		"Where somebody set all the values involved, launching is refused (exit 2); where one\n" +
		"is a default, it is a warning.\n")
}

func switches(b *strings.Builder) {
	b.WriteString("\n## The five switches\n\n" +
		"Each protection can be switched off by itself, without a new release. All are on.\n\n" +
		"| switch | on | off |\n|---|---|---|\n")
	for _, s := range config.RunSettingRows() {
		if s.Off != "" {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", s.Name, s.Help, s.Off)
		}
	}
	b.WriteString("\nThe publish gate has no switch: what was stopped or has timed out is not published.\n")
}

func variables(b *strings.Builder) {
	b.WriteString("\n## Environment variables of the sources\n\n" +
		"The variables that agents' runners read already. Each keeps the unit of its source;\n" +
		"its number has none. The default is that of the source: without the variable, the\n" +
		"settings above hold.\n\n" +
		"| variable | setting | unit | default there | takes | source |\n|---|---|---|---|---|---|\n")
	for _, v := range config.RunVariableRows() {
		unit := v.Unit
		if unit == "" {
			unit = "-"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s | %s | %s |\n", v.Name, v.Setting, unit, code(v.Default), v.Takes, v.Source)
	}
	b.WriteString("\nWhere several set one limit and differ, the smallest holds, with a warning.\n" +
		"`AGENT_TIMEOUT` bounds one execution of the agent, whatever it prints: it is a command\n" +
		"timeout, not silence. What `SANDBOX_...` says of size, snapshot and image counts for\n" +
		"services; sandboxes on this machine have the file's sizes and those of `local`.\n\n" +
		"A variable that is empty, out of its range or no number stops what launches tasks\n" +
		"(exit 2), and nothing else: `sbx ls` works. `sbx doctor` and `sbx config explain`\n" +
		"show it too.\n")
}

// flagOf names a flag that some verb has.
func flagOf(name string) string {
	found := "-"
	forEach(tree(), func(c *cobra.Command) {
		if name != "" && c.Flags().Lookup(name) != nil {
			found = code("--" + name)
		}
	})
	return found
}

// TestLaunchPageIsLinked keeps the page in reach of a reader.
func TestLaunchPageIsLinked(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	assert.Contains(t, string(readme), "(docs/LAUNCHING.md)")
}
