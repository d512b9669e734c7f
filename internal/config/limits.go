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
	RequestTimeout  time.Duration // one HTTP request, 10s (DESIGN section 3)
	ProviderTimeout time.Duration // one provider's share of a verb without progress, 20s (DESIGN section 3)
}

// limit is one of the limits as data: its key in the file, the flag that
// overrides it and its default (CLI.md, section Configuration).
type limit struct {
	name     string
	flag     string // "" = none
	fallback string
	kind     providers.OptionKind
	help     string
}

func (l limit) key() string { return "limits." + l.name }

func limits() []limit {
	return []limit{
		{"max_delete", "max-delete", "20", providers.OptionCount, "sandboxes per bulk ending"},
		{"max_fraction", "max-fraction", "25%", kindPercent, "of a profile's complete fleet per bulk ending"},
		{"concurrency", "concurrency", "16", providers.OptionCount, "requests in flight"},
		{"request_timeout", "", "10s", providers.OptionDuration, "one HTTP request"},
		{"provider_timeout", "", "20s", providers.OptionDuration, "one provider's share of a verb without progress"},
	}
}

// limits reads the limits that hold.
func (l *loader) limits() Limits {
	read := func(name string) int64 {
		for _, m := range limits() {
			if e, ok := l.layers.get(m.key()); ok && m.name == name {
				n, _ := amount(m.kind, e.text) // checked where it came in, with its place
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
	}
}
