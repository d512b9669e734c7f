package providers

import (
	"context"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// Type is a kind of provider as data: what it is called, which settings it
// takes, how one is opened. Flags, `config explain`, docs and redaction come
// from Options. Types are values in a list; nothing registers itself.
type Type struct {
	Name       string
	Help       string
	SwitchedOn []string // the environment variables whose presence, all of them, adds a profile of this type; none = never
	Always     bool     // present without any configuration, and nothing else: see Facts
	Facts
	Options   []Option
	ExitWords []sandbox.ExitWord // what it says of an end where others give an exit code
	LifeSigns []LifeSign         // what tells whether a sandbox works, and what each cannot know
	// NoLabels says that the API keeps no labels of a sandbox, so that none can say whose
	// it is.
	NoLabels bool
	// LabelsIn is where somebody who makes sandboxes without sbx writes their labels, in
	// the words of the provider's own SDK.
	LabelsIn string
	// KeepsRecords says that a control plane behind the API has records of what should
	// exist.
	KeepsRecords bool
	// TellsQuota says that the API tells how much of an account's limits is used.
	TellsQuota bool
	// Emergency says that the provider has an emergency cleanup of its own.
	Emergency bool
	Open      func(ctx context.Context, p Profile, d Deps) (Provider, error)
	// Attach opens a source instead of a provider; exactly one of Open and
	// Attach is set. The profile's setting "attach" names the provider's profile.
	Attach func(ctx context.Context, p Profile, d Deps) (Source, error)
}

// LifeSign is one source by which a sandbox shows that it works.
type LifeSign struct {
	Ability string // that it is read by; "" = the record itself
	Shows   string // what a sign of it means
	Misses  string // what may work on without one; "" = nothing: its absence is silence
}

// Option is one setting of a provider type.
type Option struct {
	Name    string
	Env     string // "" = none
	Default string // as it would be written in the file
	Kind    OptionKind
	Secret  bool
	Account bool     // tells two accounts apart beside type, url and credential
	Choices []string // the words that it may be; nil = any
	Help    string
}

// Names of options that mean the same in every type.
const (
	OptionAttach     = "attach"      // of a source: the provider's profile that it knows more about
	OptionActivity   = "activity"    // ActivityAuto or ActivityAgeOnly
	OptionStuckAfter = "stuck_after" // agent type -> age (OptionLimits); the key OptionDefault is all others
	OptionDefault    = "default"
	// OptionMaxSandboxes is how many may run at once, instead of limits.max_sandboxes.
	OptionMaxSandboxes = "max_sandboxes"
)

// The words of the option activity.
const (
	ActivityAuto    = "auto"     // what shows no life and cannot be asked for it is kept
	ActivityAgeOnly = "age-only" // it is judged by its age
)

// CommonOptions are those that the profile of every provider may have beside the
// options of its type. A type that declares one itself gives it another default.
func CommonOptions() []Option {
	return []Option{
		{
			Name: OptionActivity, Default: ActivityAuto, Choices: []string{ActivityAuto, ActivityAgeOnly},
			Kind: OptionText, Help: "auto keeps what runs and shows no life; age-only judges it by its age",
		},
		{Name: OptionStuckAfter, Kind: OptionLimits, Help: "ages from which a silent sandbox counts as stuck, by agent type, and default"},
		{Name: OptionMaxSandboxes, Kind: OptionCount, Help: "how many may run at once, instead of limits.max_sandboxes"},
	}
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
	OptionArgs     OptionKind = "args"   // a list of words
	OptionMap      OptionKind = "map"    // names to words
	OptionLimits   OptionKind = "limits" // names to durations
)

// Profile is one configured provider: its name, its type and its settings as
// text, defaults filled in and checked by kind.
type Profile struct {
	Name     string
	Type     string
	Settings map[string]string
	// Commands give secrets that are not among the settings: option -> program with
	// its arguments, whose first line of output is the secret.
	Commands map[string][]string
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
