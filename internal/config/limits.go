package config

import (
	"time"

	"sbx/internal/providers"
)

// Limits bound what one command may do; the defaults are those of CLI.md,
// section Configuration.
type Limits struct {
	MaxDelete       int           // sandboxes per bulk ending, 20
	MaxFraction     Percent       // of a profile's complete fleet, 25%
	Concurrency     int           // requests in flight, 16
	RequestTimeout  time.Duration // one HTTP request, 10s
	MaxSandboxes    int           // that may run at once at one profile; 0 = nobody has said
	ProviderTimeout time.Duration // one provider's share of a verb without progress, 20s
}

// limit is one of the limits as data: its key in the file, the flag that
// overrides it and its default (CLI.md, section Configuration).
type limit struct {
	name     string
	flag     string // "" = none
	fallback string
	kind     providers.OptionKind
	help     string
	sample   string // where there is no default
	// widens says that a lower value may widen what ends: a project file cannot set it.
	widens bool
}

func (l limit) settingKey() string { return "limits." + l.name }

func limitSettings() []limit {
	return []limit{
		{name: "max_delete", flag: "max-delete", fallback: "20", kind: providers.OptionCount, help: "sandboxes per bulk ending"},
		{name: "max_fraction", flag: "max-fraction", fallback: "25%", kind: kindPercent, help: "of a profile's complete fleet per bulk ending"},
		{name: "concurrency", flag: "concurrency", fallback: "16", kind: providers.OptionCount, help: "requests in flight"},
		{name: "request_timeout", fallback: "10s", kind: providers.OptionDuration, help: "one HTTP request"},
		{name: "provider_timeout", fallback: "20s", kind: providers.OptionDuration, help: "one provider's share of a verb without progress"},
		{name: "max_sandboxes", kind: providers.OptionCount, sample: "50", widens: true, help: "that run at one profile: create and run refuse more, and it is a quota where the provider tells none; " +
			"a profile may have its own"},
	}
}

// resolvedLimits reads the limits that hold.
func (l *loader) resolvedLimits() Limits {
	read := func(name string) int64 {
		for _, m := range limitSettings() {
			if e, ok := l.layers.lookup(m.settingKey()); ok && m.name == name {
				n, _ := parseAmount(m.kind, e.text) // checked where it came in, with its place
				return n
			}
		}
		return 0
	}
	return Limits{
		MaxDelete:       int(read("max_delete")),
		MaxFraction:     Percent(read("max_fraction")),
		Concurrency:     int(read("concurrency")),
		RequestTimeout:  time.Duration(read("request_timeout")),
		ProviderTimeout: time.Duration(read("provider_timeout")),
		MaxSandboxes:    int(read("max_sandboxes")),
	}
}
