package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/providers"
)

const (
	keyRun = "run"

	nameCommand    = "command_timeout"
	nameAttempt    = "attempt_timeout"
	nameDeadline   = "deadline"
	nameInactivity = "inactivity"
	nameAttempts   = "attempts"
	nameRetryDelay = "retry_delay"
	nameCallback   = "callback_url"
	nameMemory     = "memory"
	nameCPU        = "cpu"
	nameDisk       = "disk"
	nameSnapshot   = "snapshot"
	nameImage      = "image"

	wordTrue  = "true"
	wordFalse = "false"
)

// setting is one key of a file as data, with what else says it.
type setting struct {
	table    string // "" = none
	name     string
	flag     string // "" = none
	variable string // of sbx; "" = none
	fallback string // "" = nothing
	kind     providers.OptionKind
	most     string                       // "" = what the kind takes
	own      func(string) (string, error) // reads a flag and a variable instead of the kind
	sample   string                       // in the starter file, where there is no default
	help     string
	off      string // of a switch: what is the case when it is off
}

func (s setting) settingKey() string { return strings.TrimPrefix(s.table+"."+s.name, ".") }

func inTable(table string, list []setting) []setting {
	for i := range list {
		list[i].table = table
	}
	return list
}

// allSettings are the settings that a default, a flag or a variable may set as they are. The variables of task
// launch are others': several may mean one setting, each in a unit of its own.
func allSettings() []setting {
	return slices.Concat(limitSettings(), runSettings(), []setting{
		{name: keyNoColor, flag: flagNoColor, variable: EnvNoColor, fallback: wordFalse, own: boolWord},
		{name: keyUnattended, variable: EnvUnattended, fallback: wordFalse, own: oneOrZero},
		{name: keyMouse, fallback: mouseOn},
	})
}

func settingOf(key string) setting {
	list := allSettings()
	if i := slices.IndexFunc(list, func(s setting) bool { return s.settingKey() == key }); i >= 0 {
		return list[i]
	}
	return setting{}
}

// readText reads a flag or a variable.
func (s setting) readText(text string) (string, error) {
	if s.own != nil {
		return s.own(text)
	}
	return text, s.checkText(text)
}

// runSettings are the settings of task launch, with their defaults; docs/TASKS.md lists them.
func runSettings() []setting {
	return inTable(keyRun, slices.Concat(runLimits(), runSizes(), runSwitches()))
}

func runLimits() []setting {
	const day, week = "1d", "1w"
	return []setting{
		{name: nameCommand, flag: "command-timeout", fallback: "300s", kind: providers.OptionDuration, most: day, help: "one command in a sandbox"},
		{
			name: nameAttempt, flag: "attempt-timeout", fallback: "600s", kind: providers.OptionDuration, most: day,
			help: "one attempt: create, command and collecting",
		},
		{name: nameDeadline, flag: "deadline", fallback: "35m", kind: providers.OptionDuration, most: week, help: "the whole task with all its attempts"},
		{
			name: nameInactivity, flag: "inactivity", fallback: "60s", kind: providers.OptionDuration, most: day,
			help: "time without output or activity after which a command counts as stalled",
		},
		{name: nameAttempts, flag: "attempts", fallback: "3", kind: providers.OptionCount, most: "100", help: "attempts, each in its own sandbox"},
		{
			name: nameRetryDelay, flag: "retry-delay", fallback: "6s", kind: providers.OptionDuration, most: "60s",
			help: "delay before the second attempt; doubles, plus or minus half, up to 60s",
		},
		{name: "keep_alive_ttl", fallback: "1h", kind: providers.OptionDuration, most: week, help: "how long a sandbox is kept after its task"},
		{name: nameCallback, kind: kindAddress, sample: "https://control.example", help: "address to which the task reports its progress"},
	}
}

func runSizes() []setting {
	return []setting{
		{name: nameMemory, kind: providers.OptionSize, sample: "4G", help: "memory of a task's sandbox; without it the provider chooses"},
		{name: nameCPU, kind: kindCores, sample: "2", help: "cores of a task's sandbox; without it the provider chooses"},
		{name: nameDisk, kind: providers.OptionSize, sample: "8G", help: "disk of a task's sandbox; without it the provider chooses"},
		{name: nameSnapshot, kind: kindPlainWord, sample: "ai-agent-dev-light", help: "snapshot from which remote sandboxes start"},
		{name: nameImage, kind: kindPlainWord, sample: "registry.example/agent:1", help: "image from which remote sandboxes start if no snapshot is set"},
	}
}

func runSwitches() []setting {
	on := func(name, help, off string) setting {
		return setting{name: name, fallback: wordTrue, kind: providers.OptionBool, help: help, off: off}
	}
	return []setting{
		on("db_backed_stop", "another process or host may stop the task",
			"only the process that runs the task can stop it, by Ctrl-C; others are refused (exit 9)"),
		on("cancellation_checks", "the runner checks for stop requests while it runs",
			"the runner does not check; a stop still terminates the sandbox and blocks publishing"),
		on("health_probe", "a sandbox is probed before it is used again",
			"a resumed task uses the sandbox without a probe"),
		on("inactivity_timeout", "inactivity ends a command",
			"inactivity ends nothing; the other limits apply"),
		on("authoritative_timeout", "a timeout terminates the sandbox and verifies its end",
			"a timeout ends the recorded attempt and is reported; the provider's own expiry ends the sandbox, and the task stays unverified (exit 8)"),
	}
}

// runSettingOf finds a setting of task launch; the zero one for a name that is none.
func runSettingOf(name string) setting { return settingOf(keyRun + "." + name) }

// checkText refuses what the setting does not take. It never quotes an address.
func (s setting) checkText(text string) error {
	if err := checkKind(s.kind, text); err != nil || s.most == "" {
		return err
	}
	n, _ := parseAmount(s.kind, text)
	if most, err := parseAmount(s.kind, s.most); err == nil && n > most {
		return fmt.Errorf("must be at most %s, not %q", s.most, text)
	}
	return nil
}

// unitMilli ends an entry that came from a variable in milliseconds. Files and
// flags cannot write it: their durations have whole seconds.
const unitMilli = "ms"

// parseSetting reads what check or a variable let in, in the smallest unit of its kind.
func (s setting) parseSetting(text string) (int64, error) {
	if digits, ok := strings.CutSuffix(text, unitMilli); ok && s.kind == providers.OptionDuration {
		if n, ok := digitsOf(digits); ok {
			return n * int64(time.Millisecond), nil
		}
	}
	if s.kind == kindAddress || s.kind == kindPlainWord || s.kind == providers.OptionBool {
		return 0, errors.New("is not an amount")
	}
	return parseAmount(s.kind, text)
}

// SettingRow describes one setting of task launch for documents that are made
// from the program.
type SettingRow struct {
	Name    string // below `run:`
	Flag    string // without dashes; "" = none
	Default string // "" = nothing
	Takes   string // what a file or a flag may say
	Help    string
	Off     string // of a switch: what is the case when it is off
}

// VariableRow describes one environment variable of the sources.
type VariableRow struct {
	Name    string
	Setting string // below `run:`
	Unit    string // "" = a text or a switch
	Default string // of the source; sbx has its own
	Takes   string
	Source  string
}

// RunSettingRows describes all settings of task launch.
func RunSettingRows() []SettingRow {
	rows := make([]SettingRow, 0, len(runSettings()))
	for _, s := range runSettings() {
		rows = append(rows, SettingRow{s.name, s.flag, s.fallback, s.acceptedValues(), s.help, s.off})
	}
	return rows
}

// RunVariableRows describes all environment variables of the sources.
func RunVariableRows() []VariableRow {
	rows := make([]VariableRow, 0, len(runVariables()))
	for _, v := range runVariables() {
		rows = append(rows, VariableRow{v.name, v.setting, string(v.unit), v.fallback, v.acceptedValues(), v.source})
	}
	return rows
}

func (s setting) acceptedValues() string {
	switch s.kind {
	case providers.OptionDuration:
		return "1s to " + s.most
	case providers.OptionCount:
		return "1 to " + s.most
	case providers.OptionBool:
		return "true, false"
	case providers.OptionSize:
		return "a size, like " + s.sample
	case kindCores:
		return "cores, like 2 or 0.5"
	case kindAddress:
		return "an http or https address"
	default:
		return "a name"
	}
}
