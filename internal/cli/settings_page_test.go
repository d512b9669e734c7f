package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
)

// launchSettings is the part of docs/TASKS.md with the settings of task launch, made from the tables that read
// them. A flag is named once a verb has it.
func launchSettings() string {
	var b strings.Builder
	b.WriteString("The settings are in the `run:` block of the configuration. Precedence: flag, environment variable, file,\n" +
		"default. `sbx config explain` shows each value and its origin. Durations have units (`90s`, `10m`), sizes are\n" +
		"1024-based (`512M`, `4G`).\n\n" +
		"| setting | flag | default | values | what it is |\n|---|---|---|---|---|\n")
	for _, s := range config.RunSettingRows() {
		if s.Off == "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Name, flagOf(s.Flag), code(s.Default), s.Takes, s.Help)
		}
	}
	b.WriteString("\nSnapshot and image apply to remote providers, the `template` of a profile to E2B and Novita.\n\n" +
		"Limits contradict each other where `command_timeout` is longer than `attempt_timeout`, `deadline` is shorter\n" +
		"than all attempts with the longest waits between them, or `inactivity` is not shorter than `command_timeout`\n" +
		"(while `inactivity_timeout` is on). If all these values were set, launching is refused (exit 2);\n" +
		"if one is a default, it is a warning.\n")
	switches(&b)
	variables(&b)
	return b.String()
}

func switches(b *strings.Builder) {
	b.WriteString("\n### The five switches\n\n" +
		"Each protection is on by default and can be switched off alone, without a new release, also by a variable\n" +
		"(true, false, 1 or 0).\n\n" +
		"| switch | variable | on | off |\n|---|---|---|---|\n")
	for _, s := range config.RunSettingRows() {
		if s.Off != "" {
			fmt.Fprintf(b, "| `%s` | `%s` | %s | %s |\n", s.Name, variableOf(s.Name), s.Help, s.Off)
		}
	}
	b.WriteString("\nPublishing has no such switch: what was stopped or has timed out is never published.\n")
}

// variableOf names the environment variable of a switch.
func variableOf(setting string) string {
	rows := config.RunVariableRows()
	return rows[slices.IndexFunc(rows, func(v config.VariableRow) bool { return v.Setting == setting })].Name
}

func variables(b *strings.Builder) {
	b.WriteString("\n### Environment variables of the sources\n\n" +
		"Variables that agents' runners use, each number in the unit of its source, written without it. The default is\n" +
		"that of the source: without the variable, the settings above apply.\n\n" +
		"| variable | setting | unit | default there | values | source |\n|---|---|---|---|---|---|\n")
	for _, v := range config.RunVariableRows() {
		if strings.HasPrefix(v.Name, "ENABLE_") {
			continue // in the table of switches
		}
		unit := v.Unit
		if unit == "" {
			unit = "-"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s | %s | %s |\n", v.Name, v.Setting, unit, code(v.Default), v.Takes, v.Source)
	}
	b.WriteString("\nIf several variables set one limit to different values, the smallest applies, with a warning. `AGENT_TIMEOUT`\n" +
		"limits one execution of the agent, with or without output: it is a command timeout, not inactivity. Size,\n" +
		"snapshot and image from `SANDBOX_...` apply to remote providers; sandboxes on this machine use the sizes of the\n" +
		"file and of `local`. A variable that is empty, out of range or not a number makes launching tasks fail (exit 2)\n" +
		"and nothing else: `sbx ls` works. `sbx doctor` and `sbx config explain` show it too.\n")
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

// TestLaunchSettingsAreLinked keeps them in reach of a reader.
func TestLaunchSettingsAreLinked(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	assert.Contains(t, string(readme), "(docs/TASKS.md#settings)")
}
