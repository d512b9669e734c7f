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
		"Generated from the program (`make docs`). The settings are in the `run:` block of the\n" +
		"configuration. Precedence: flag, environment variable, file, default.\n" +
		"`sbx config explain` shows each value and its origin.\n\n" +
		"| setting | flag | default | values | what it is |\n|---|---|---|---|---|\n")
	for _, s := range config.RunSettingRows() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, flagOf(s.Flag), code(s.Default), s.Takes, s.Help)
	}
	fmt.Fprintf(&b, "\nDurations have units (`90s`, `10m`), sizes are 1024-based (`512M`, `4G`).\n"+
		"Snapshot and image apply to remote providers; if both are set, the snapshot is used. The\n"+
		"`template` of a profile applies to E2B and Novita.\n\n"+
		"The delay between attempts starts at `retry_delay` and is multiplied by %d each time,\n"+
		"plus or minus up to %d %%, with a maximum of %.0f s.\n", config.RetryFactor, config.RetrySpread, config.RetryCap.Seconds())
	contradictions(&b)
	switches(&b)
	variables(&b)
	return b.String()
}

func contradictions(b *strings.Builder) {
	b.WriteString("\n## Contradicting limits\n\n" +
		"- `command_timeout` longer than `attempt_timeout`\n" +
		"- `deadline` shorter than all attempts with the longest waits between them\n" +
		"- `inactivity` not shorter than `command_timeout`, while `inactivity_timeout` is on\n\n" +
		"If all these values were set, launching is refused (exit 2); if one is a default, it is\n" +
		"a warning.\n")
}

func switches(b *strings.Builder) {
	b.WriteString("\n## The five switches\n\n" +
		"Each protection can be switched off alone, without a new release. All are on by default.\n\n" +
		"| switch | on | off |\n|---|---|---|\n")
	for _, s := range config.RunSettingRows() {
		if s.Off != "" {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", s.Name, s.Help, s.Off)
		}
	}
	b.WriteString("\nPublishing has no such switch: what was stopped or has timed out is never published.\n")
}

func variables(b *strings.Builder) {
	b.WriteString("\n## Environment variables of the sources\n\n" +
		"Variables that agents' runners use. Each number has the unit of its source, written\n" +
		"without it. The default is that of the source: without the variable, the settings above\n" +
		"apply.\n\n" +
		"| variable | setting | unit | default there | values | source |\n|---|---|---|---|---|---|\n")
	for _, v := range config.RunVariableRows() {
		unit := v.Unit
		if unit == "" {
			unit = "-"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s | %s | %s |\n", v.Name, v.Setting, unit, code(v.Default), v.Takes, v.Source)
	}
	b.WriteString("\nIf several variables set one limit to different values, the smallest applies, with a\n" +
		"warning. `AGENT_TIMEOUT` limits one execution of the agent, with or without output: it is\n" +
		"a command timeout, not inactivity. Size, snapshot and image from `SANDBOX_...` apply to\n" +
		"remote providers; sandboxes on this machine use the sizes of the file and of `local`.\n\n" +
		"A variable that is empty, out of range or not a number makes only launching tasks fail\n" +
		"(exit 2): `sbx ls` works. `sbx doctor` and `sbx config explain` show it too.\n")
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
