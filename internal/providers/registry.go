package providers

import (
	"context"
	"errors"
	"iter"
	"net"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/process"
	"sbx/internal/sandbox"
)

// Type is a provider type: its name, its settings, and how a profile is opened. Flags, `config
// explain`, docs and redaction are made from Options. Types are values in a list; there is no
// registration.
type Type struct {
	Name       string
	Help       string
	SwitchedOn []string // environment variables that together add a profile of this type; none = never
	Always     bool     // it needs no configuration
	Facts
	Options   []Option
	ExitWords []sandbox.ExitWord // what it has in place of an exit code
	LifeSigns []LifeSign         // what shows whether a sandbox works
	// NoLabels says that the API keeps no labels, so that no label can name an owner.
	NoLabels bool
	// LabelsIn is where labels are set in the provider's own SDK.
	LabelsIn string
	// KeepsRecords says that a control plane behind the API has records of sandboxes.
	KeepsRecords bool
	// TellsQuota says that the API has the limits of an account and their use.
	TellsQuota bool
	// Emergency says that the provider has an emergency cleanup of its own.
	Emergency bool
	Open      func(ctx context.Context, p Profile, d Deps) (Provider, error)
	// Attach opens a source instead of a provider; exactly one of Open and Attach is set. The
	// setting "attach" names the provider's profile.
	Attach func(ctx context.Context, p Profile, d Deps) (Source, error)
}

// LifeSign is one sign that a sandbox works.
type LifeSign struct {
	Ability string // that reads it; "" = the record
	Shows   string // what the sign means
	Misses  string // what may work without the sign; "" = nothing: without it nothing works
}

// Option is one setting of a provider type.
type Option struct {
	Name    string
	Env     string // "" = none
	Default string // as in the file
	Kind    OptionKind
	Secret  bool
	Account bool     // it is part of the identity of an account, as type, url and credential
	Choices []string // allowed values; nil = any
	Help    string
}

// Names of options with the same meaning in every type.
const (
	OptionAttach     = "attach"      // of a source: the provider's profile
	OptionActivity   = "activity"    // ActivityAuto or ActivityAgeOnly
	OptionStuckAfter = "stuck_after" // agent type -> age (OptionLimits); the key OptionDefault is for all others
	OptionDefault    = "default"
	// OptionMaxSandboxes is how many may run at once, instead of limits.max_sandboxes.
	OptionMaxSandboxes = "max_sandboxes"
)

// The values of the option activity.
const (
	ActivityAuto    = "auto"     // a sandbox without a sign of life is kept
	ActivityAgeOnly = "age-only" // its age decides
)

// CommonOptions are the options of every provider in addition to those of its type. A type may declare
// one itself with another default.
func CommonOptions() []Option {
	return []Option{
		{
			Name: OptionActivity, Default: ActivityAuto, Choices: []string{ActivityAuto, ActivityAgeOnly},
			Kind: OptionText, Help: "auto keeps a running sandbox whose activity is unknown; age-only judges it by its age",
		},
		{Name: OptionStuckAfter, Kind: OptionLimits, Help: "ages after which a silent sandbox counts as stuck, by agent type, and default"},
		{Name: OptionMaxSandboxes, Kind: OptionCount, Help: "how many may run at the same time, instead of limits.max_sandboxes"},
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

// Profile is one configured provider: its name, its type and its settings as text, with defaults, and
// checked by kind.
type Profile struct {
	Name     string
	Type     string
	Settings map[string]string
	// Commands print secrets that are not in the settings: option -> program with its arguments,
	// whose first line of output is the secret.
	Commands map[string][]string
	// Unset are the environment variables that the configuration names for secrets and that are empty: option -> variable.
	Unset map[string]string
}

// Deps are the dependencies of a provider.
type Deps struct {
	Now       func() time.Time
	Lookup    func(key string) (string, bool) // environment
	StateDir  string                          // of sbx; made on first write
	Version   string                          // of sbx, for records
	Notice    func(text string)               // one line for the operator, on stderr
	Net       httpx.Net                       // for providers behind an API
	Run       Runner                          // helper programs
	Connect   Connector                       // programs that are a connection, such as ssh
	TimeScale process.TimeScale               // of limits in real time, for providers on this machine
}

// Runner runs a helper program with more environment variables (KEY=VALUE) and without input; it ends with ctx. said
// is what it printed on stderr, also beside an error.
type Runner func(ctx context.Context, env []string, program string, args ...string) (out, said string, err error)

// Connector starts a program whose standard input and output are a connection; it ends with the connection.
type Connector func(program string, args ...string) (net.Conn, error)

// Facts are properties of a provider type that decide how sbx treats its sandboxes. Each type declares
// them; no other code compares the name of a type (the arch test checks that). The zero value is a
// service with the fewest guarantees.
type Facts struct {
	// HostBound says that the sandboxes are on the machine that made them and that no other host
	// can see them.
	HostBound bool
	// HostProcesses says that the sandboxes are processes of this machine: they see its files, and
	// ending them needs its process table and control groups. It implies HostBound.
	HostProcesses bool
	// InStateDir says that the sandboxes are kept in the state directory of sbx, which the profile
	// needs.
	InStateDir bool
	// SizedByProfile says that the settings of the profile set the default size of a sandbox.
	// Images, snapshots and the environment variables of sizes, which are for services, do not
	// apply.
	SizedByProfile bool
	// OwnsAll says that only sbx makes sandboxes here, so that a profile without `owned` owns all of
	// them.
	OwnsAll bool
	// LaunchDefault says that a sandbox needs no account and costs nothing, so that it is the
	// default for a create.
	LaunchDefault bool
	// CreateSettles is how long after a create without an answer a sandbox may still appear in the
	// listing; 0 = not known, see SettleTime.
	CreateSettles time.Duration
	// EndKeeps is what an end without --delete keeps; "" counts as EndKeepsState.
	EndKeeps EndKeeps
}

// defaultCreateSettles is CreateSettles of a type without CreateSettles; it includes the placement of a VM.
const defaultCreateSettles = 60 * time.Second

// SettleTime is CreateSettles or its default.
func (f Facts) SettleTime() time.Duration {
	if f.CreateSettles > 0 {
		return f.CreateSettles
	}
	return defaultCreateSettles
}

// DeletesForTask says that a task deletes its sandbox instead of only ending it. Where an end keeps
// only a record with logs, a delete would remove these.
func (f Facts) DeletesForTask() bool { return f.EndKeeps != EndKeepsRecord }

// EndKeeps is what an end without --delete keeps of a sandbox.
type EndKeeps string

// The closed list of what an end keeps.
const (
	EndKeepsNothing EndKeeps = "nothing" // an end destroys all of it, and --delete adds nothing
	EndKeepsRecord  EndKeeps = "record"  // its record and its logs, which cost nothing
	EndKeepsState   EndKeeps = "state"   // a disk, a snapshot or a name, which may cost until --delete
)

// Unopened replaces a provider that could not be opened, so that the others work: each of its methods
// fails with the reason.
type Unopened struct {
	profile Profile
	why     error
}

// NewUnopened makes one; the error names the profile.
func NewUnopened(p Profile, why error) *Unopened {
	told := fault.Error{Kind: fault.KindOf(why), Hint: fault.HintOf(why), Err: why}
	if f, ok := errors.AsType[*fault.Error](why); ok {
		told = *f
	}
	return &Unopened{profile: p, why: told.At(p.Name, "")}
}

// Name is the profile's name.
func (u *Unopened) Name() string { return u.profile.Name }

// Type is the type of the profile.
func (u *Unopened) Type() string { return u.profile.Type }

// Close does nothing.
func (*Unopened) Close() {}

// List fails.
func (u *Unopened) List(context.Context, Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) { yield(sandbox.Sandbox{}, u.why) }
}

// Get fails.
func (u *Unopened) Get(context.Context, string) (sandbox.Sandbox, error) {
	return sandbox.Sandbox{}, u.why
}

// Terminate fails.
func (u *Unopened) Terminate(context.Context, string, TerminateOptions) error { return u.why }

// Check is the reason as a finding.
func (u *Unopened) Check(context.Context) []Check {
	return []Check{{Check: "settings", Verdict: sandbox.False, Message: u.why.Error(), Hint: fault.HintOf(u.why)}}
}
