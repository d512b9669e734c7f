package config

import "sbx/internal/providers"

// The environment variables of sbx itself. An empty one counts as unset.
const (
	EnvConfig   = "SBX_CONFIG"    // a file instead of user and project file
	EnvStateDir = "SBX_STATE_DIR" // absolute
	EnvProvider = "SBX_PROVIDER"  // default of --provider; several with commas
	EnvNoColor  = "SBX_NO_COLOR"  // anything but 0 and false turns colour off
)

const (
	keyUse        = "use"
	keyLaunch     = "launch"
	keyProduction = "production"
	keyStateDir   = "state_dir"
	keyNoColor    = "no_color"
	keyConfig     = "config"
	flagConfig    = "config"
	flagProvider  = "provider"
	flagNoColor   = "no-color"
)

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

// FlagNames lists the flags that Load reads from Input.Flags.
func FlagNames() []string {
	names := []string{flagConfig, flagProvider, flagNoColor}
	for _, l := range limits() {
		if l.flag != "" {
			names = append(names, l.flag)
		}
	}
	return names
}
