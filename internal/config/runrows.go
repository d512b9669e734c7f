package config

import (
	"sbx/internal/providers"
)

// SettingRow describes one setting of task launch for documents that are made
// from the program.
type SettingRow struct {
	Name    string // below `run:`
	Flag    string // without dashes; "" = none
	Default string // "" = nothing
	Takes   string // what a file or a flag may say
	Project string // what a project file may do without trust
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
		rows = append(rows, SettingRow{s.name, s.flag, s.fallback, s.acceptedValues(), s.project.describe(), s.help, s.off})
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

func (s runSetting) acceptedValues() string {
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

func (l trustRule) describe() string {
	switch l {
	case mayLower:
		return "lower it"
	case mayRaise:
		return "raise it"
	case mayEnable:
		return "switch it on"
	default:
		return "do nothing"
	}
}
