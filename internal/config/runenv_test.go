package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/process"
)

// TestVariables gives each variable its ends, and what lies just beyond them.
func TestVariables(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		good    map[string]string // what it says in the setting's own form
		refused []string
	}{
		{"SANDBOX_TIMEOUT", map[string]string{"1": "1s", "600": "600s", "86400": "86400s"}, []string{"0", "86401", "600000"}},
		{"CLAUDE_CODE_TIMEOUT", map[string]string{"1": "1s", "300": "300s", "86400": "86400s"}, []string{"0", "86401"}},
		{"AGENT_MAX_WAIT_TIME_MS", map[string]string{"1000": "1s", "300000": "300s", "1001": "1001ms", "86400000": "86400s"}, []string{"300", "999", "86400001"}},
		{"AGENT_TIMEOUT", map[string]string{"60000": "60s", "1000": "1s"}, []string{"60", "999", "86400001"}},
		{"AGENT_INACTIVITY_TIMEOUT_MS", map[string]string{"60000": "60s", "1000": "1s"}, []string{"60", "999", "86400001"}},
		{"SANDBOX_MEMORY_GB", map[string]string{"4": "4G", "8": "8G"}, []string{"3", "9", "4G"}},
		{"SANDBOX_CPU", map[string]string{"2": "2", "4": "4"}, []string{"1", "5", "2.5"}},
		{"SANDBOX_DISK_GB", map[string]string{"8": "8G", "10": "10G"}, []string{"7", "11", "8GB"}},
	} {
		v := variableNamed(t, tc.name)
		for text, want := range tc.good {
			got, err := v.translate(text)
			require.NoError(t, err, "%s=%s", tc.name, text)
			assert.Equal(t, want, got, tc.name)
		}
		for _, text := range append(tc.refused, "", "-5", "+5", " 5", "5 ", "5s", "5ms", "0x5", "5.0", "1e3", "five", "99999999999999999999", "5\n", "٥") {
			_, err := v.translate(text)
			require.Error(t, err, "%s=%q", tc.name, text)
		}
		_, err := v.translate(v.fallback)
		require.NoError(t, err, "%s takes its source's default", tc.name)
	}
}

func TestSwitchVariables(t *testing.T) {
	t.Parallel()
	count := 0
	for _, v := range runVariables() {
		if !strings.HasPrefix(v.name, "ENABLE_") {
			continue
		}
		count++
		for text, want := range map[string]string{"true": "true", "1": "true", "false": "false", "0": "false"} {
			got, err := v.translate(text)
			require.NoError(t, err, text)
			assert.Equal(t, want, got, text)
		}
		for _, text := range []string{"", "yes", "TRUE", "True", "on", "2", " true", "true\n", "null"} {
			_, err := v.translate(text)
			require.Error(t, err, "%s=%q", v.name, text)
		}
	}
	assert.Equal(t, 5, count)
}

// TestEachSwitchIsSwitchedAlone is S1-31: each is one variable and one field, and
// touches no other.
func TestEachSwitchIsSwitchedAlone(t *testing.T) {
	t.Parallel()
	for variable, off := range map[string]Switches{
		"ENABLE_DB_BACKED_STOP":        {false, true, true, true, true},
		"ENABLE_CANCELLATION_CHECKS":   {true, false, true, true, true},
		"ENABLE_HEALTH_PROBE":          {true, true, false, true, true},
		"ENABLE_INACTIVITY_TIMEOUT":    {true, true, true, false, true},
		"ENABLE_AUTHORITATIVE_TIMEOUT": {true, true, true, true, false},
	} {
		for _, text := range []string{"false", "0"} {
			w := newWorld(t)
			w.env = append(w.env, variable+"="+text)
			want := defaultRun()
			want.Switches = off
			want.Origins[variableNamed(t, variable).setting] = "env " + variable
			assert.Equal(t, want, w.launching(), variable)
		}
		w := newWorld(t)
		w.user("run: {" + variableNamed(t, variable).setting + ": false}")
		w.env = append(w.env, variable+"=1")
		assert.Equal(t, defaultRun().Switches, w.launching().Switches, "the environment is stronger than a file")
	}
}

// TestBrokenVariablesStopLaunchingOnly: a variable that another program reads may
// say anything, and `ls` works in every case.
func TestBrokenVariablesStopLaunchingOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ variable, text, want, hint string }{
		{"SANDBOX_TIMEOUT", "", "env SANDBOX_TIMEOUT: is empty (is a shell variable unset?)", "SANDBOX_TIMEOUT sets run.attempt_timeout of task launch and accepts 1 to 86400 seconds; correct it, or `unset SANDBOX_TIMEOUT`"},
		{"AGENT_TIMEOUT", "60s", `env AGENT_TIMEOUT: must be a whole number of milliseconds from 1000 to 86400000, not "60s"`, "AGENT_TIMEOUT sets run.command_timeout of task launch and accepts 1000 to 86400000 milliseconds; correct it, or `unset AGENT_TIMEOUT`"},
		{"SANDBOX_MEMORY_GB", "-4", `env SANDBOX_MEMORY_GB: must be a whole number of GiB from 4 to 8, not "-4"`, "SANDBOX_MEMORY_GB sets run.memory of task launch and accepts 4 to 8 GiB; correct it, or `unset SANDBOX_MEMORY_GB`"},
		{"SANDBOX_IMAGE", "a b", "env SANDBOX_IMAGE: must be a name of at most 255 characters without spaces that begins with no dash", "SANDBOX_IMAGE sets run.image of task launch and accepts a name; correct it, or `unset SANDBOX_IMAGE`"},
		{"CALLBACK_URL", "me:s3cret@host", "env CALLBACK_URL: must be an http or https address, like https://host.example", "CALLBACK_URL sets run.callback_url of task launch and accepts an http or https address; correct it, or `unset CALLBACK_URL`"},
		{"CALLBACK_URL", "https://h/\ns3cret", "env CALLBACK_URL: has a line end or another control character", ""},
		{"ENABLE_HEALTH_PROBE", "yes", `env ENABLE_HEALTH_PROBE: must be true, false, 1 or 0, not "yes"`, "ENABLE_HEALTH_PROBE sets run.health_probe of task launch and accepts true, false, 1, 0; correct it, or `unset ENABLE_HEALTH_PROBE`"},
		{"SANDBOX_CPU", strings.Repeat("9", 39) + "éx", `env SANDBOX_CPU: must be a whole number of cores from 2 to 4, not "` + strings.Repeat("9", 39) + `"...`, ""},
	} {
		w := newWorld(t)
		w.env = append(w.env, tc.variable+"="+tc.text)
		c := w.must()
		r, err := c.Run()
		require.Error(t, err, tc.variable)
		assert.Zero(t, r)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.Equal(t, tc.want, err.Error())
		if tc.hint != "" {
			assert.Equal(t, tc.hint, fault.HintOf(err))
		}
		assert.NotContains(t, err.Error()+fault.HintOf(err), "s3cret")
		assert.Equal(t, " <- env "+tc.variable+" (refused)", w.origin(c, "run."+variableNamed(t, tc.variable).setting))
	}
}

// TestEveryVariableIsRead gives each an empty value: all mistakes come at once,
// and each names its variable.
func TestEveryVariableIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, v := range runVariables() {
		w.env = append(w.env, v.name+"=")
	}
	c := w.must()
	_, err := c.Run()
	require.Error(t, err)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	for _, v := range runVariables() {
		assert.Contains(t, err.Error(), "env "+v.name+": is empty")
	}
	assert.Equal(t, len(runVariables()), strings.Count(err.Error(), "is empty"))
	assert.Equal(t, " <- env CLAUDE_CODE_TIMEOUT, AGENT_MAX_WAIT_TIME_MS, AGENT_TIMEOUT (refused)", w.origin(c, "run.command_timeout"))
}

func TestTheSmallestOfSeveralHolds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env     []string
		flag    string
		want    time.Duration
		origin  string
		warning string
	}{
		"one":        {[]string{"CLAUDE_CODE_TIMEOUT=100"}, "", 100 * time.Second, "env CLAUDE_CODE_TIMEOUT", ""},
		"equal":      {[]string{"CLAUDE_CODE_TIMEOUT=100", "AGENT_MAX_WAIT_TIME_MS=100000"}, "", 100 * time.Second, "env CLAUDE_CODE_TIMEOUT, AGENT_MAX_WAIT_TIME_MS", ""},
		"seconds":    {[]string{"CLAUDE_CODE_TIMEOUT=100", "AGENT_MAX_WAIT_TIME_MS=100001"}, "", 100 * time.Second, "env CLAUDE_CODE_TIMEOUT", "command_timeout: 100s applies, the smallest: CLAUDE_CODE_TIMEOUT differs from AGENT_MAX_WAIT_TIME_MS (100001ms)"},
		"milli":      {[]string{"CLAUDE_CODE_TIMEOUT=100", "AGENT_MAX_WAIT_TIME_MS=99999"}, "", 99999 * time.Millisecond, "env AGENT_MAX_WAIT_TIME_MS", "command_timeout: 99999ms applies, the smallest: AGENT_MAX_WAIT_TIME_MS differs from CLAUDE_CODE_TIMEOUT (100s)"},
		"three":      {[]string{"AGENT_TIMEOUT=60000", "CLAUDE_CODE_TIMEOUT=300", "AGENT_MAX_WAIT_TIME_MS=300000"}, "", time.Minute, "env AGENT_TIMEOUT", "command_timeout: 60s applies, the smallest: AGENT_TIMEOUT differs from CLAUDE_CODE_TIMEOUT (300s), AGENT_MAX_WAIT_TIME_MS (300s)"},
		"two of one": {[]string{"CLAUDE_CODE_TIMEOUT=100", "CLAUDE_CODE_TIMEOUT=50"}, "", 50 * time.Second, "env CLAUDE_CODE_TIMEOUT", ""},
		"flag":       {[]string{"CLAUDE_CODE_TIMEOUT=100", "AGENT_MAX_WAIT_TIME_MS=99999"}, "5m", 5 * time.Minute, "flag --command-timeout", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, tc.env...)
			if tc.flag != "" {
				w.flags["command-timeout"] = tc.flag
			}
			r := w.launching()
			assert.Equal(t, tc.want, r.CommandTimeout)
			assert.Equal(t, tc.origin, r.Origins["command_timeout"])
			if tc.warning == "" {
				assert.Empty(t, r.Warnings)
				return
			}
			assert.Equal(t, []string{tc.warning}, r.Warnings)
		})
	}
}

// TestRowsSayWhatIsRead holds the documents to the tables: what a row names is
// there, and every setting has a key of its own.
func TestRowsSayWhatIsRead(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, row := range RunSettingRows() {
		assert.False(t, names[row.Name], row.Name)
		names[row.Name] = true
		assert.NotEmpty(t, row.Help)
		assert.Equal(t, strings.Contains(row.Takes, "true"), row.Off != "", "a switch says what off means: %s", row.Name)
		if row.Default != "" {
			require.NoError(t, runSettingOf(row.Name).checkText(row.Default), row.Name)
		}
	}
	variables := map[string]bool{}
	for _, row := range RunVariableRows() {
		assert.True(t, names[row.Setting], row.Name)
		assert.False(t, variables[row.Name], row.Name)
		variables[row.Name] = true
		assert.NotEmpty(t, row.Source)
	}
}

func variableNamed(t *testing.T, name string) runVariable {
	t.Helper()
	for _, v := range runVariables() {
		if v.name == name {
			return v
		}
	}
	require.Fail(t, "no such variable", name)
	return runVariable{}
}

// FuzzVariables holds that no text of any variable panics or breaks a verb that
// launches nothing, and that what is accepted is within its bounds.
func FuzzVariables(f *testing.F) {
	for _, text := range []string{"", "4", "600", "60000", "-1", "1500", "true", "0", "https://h/x", "\x00", "99999999999999999999", "4G"} {
		for i := range runVariables() {
			f.Add(uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		list := runVariables()
		v := list[int(which)%len(list)]
		c, err := Load(t.Context(), Input{Types: testTypes(), Process: process.Process{Home: "/nowhere", Environ: []string{v.name + "=" + text}}})
		require.NoError(t, err)
		r, err := c.Run()
		if err != nil {
			require.Equal(t, fault.KindUsage, fault.KindOf(err))
			require.Contains(t, fault.HintOf(err), v.name)
			return
		}
		require.True(t, r.Given(v.setting))
		day := 24 * time.Hour
		for _, d := range []time.Duration{r.CommandTimeout, r.AttemptTimeout, r.Inactivity} {
			require.True(t, d >= time.Second && d <= day, d)
		}
		require.Zero(t, r.Here, "it is not for this machine")
		if v.setting == nameMemory {
			require.True(t, r.Remote.MemoryBytes >= 4*gib && r.Remote.MemoryBytes <= 8*gib)
		}
	})
}
