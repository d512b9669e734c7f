package providers

import (
	"context"
	"time"

	"sbx/internal/httpx"
)

// Type is a kind of provider as data: what it is called, which settings it
// takes, how one is opened. Flags, `config explain`, docs and redaction come
// from Options. Types are values in a list; nothing registers itself.
type Type struct {
	Name       string
	Help       string
	SwitchedOn []string // the environment variables whose presence, all of them, adds a profile of this type; none = never
	Always     bool     // present without any configuration
	Options    []Option
	Open       func(ctx context.Context, p Profile, d Deps) (Provider, error)
	// Attach opens a source instead of a provider; exactly one of Open and
	// Attach is set. The profile's setting "attach" names the provider's profile.
	Attach func(ctx context.Context, p Profile, d Deps) (Source, error)
}

// Option is one setting of a provider type.
type Option struct {
	Name    string
	Env     string // "" = none
	Default string // as it would be written in the file
	Kind    OptionKind
	Secret  bool
	Account bool // tells two accounts apart beside type, url and credential
	Help    string
}

// OptionKind is how an option's text is checked.
type OptionKind string

// The kinds of options.
const (
	OptionText     OptionKind = "text"
	OptionDuration OptionKind = "duration" // 90s, 10m; see sandbox.ParseDuration
	OptionSize     OptionKind = "size"     // 512M, 2G; see sandbox.ParseSize
	OptionCount    OptionKind = "count"    // a positive whole number
	OptionBool     OptionKind = "bool"
	OptionArgs     OptionKind = "args" // a list of words
	OptionMap      OptionKind = "map"  // names to words
)

// Profile is one configured provider: its name, its type and its settings as
// text, defaults filled in and checked by kind.
type Profile struct {
	Name     string
	Type     string
	Settings map[string]string
}

// Deps is what a provider is handed instead of reading it ambiently.
type Deps struct {
	Now      func() time.Time
	Lookup   func(key string) (string, bool) // environment
	StateDir string                          // of sbx; made on first write
	Version  string                          // of sbx, for records
	Notice   func(text string)               // one line for the operator, on stderr
	Net      httpx.Net                       // for providers behind an API
}
