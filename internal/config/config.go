package config

import (
	"slices"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Config is the effective configuration of one run.
//
// Its text forms never show settings, because settings hold secrets.
type Config struct {
	Profiles   []Profile // of providers, by name
	Sources    []Profile // control planes beside them, by name
	Use        []string  // the profiles that verbs work on; nil = all
	Launch     string    // where create goes unless --provider names another; "" = nowhere
	Production []string  // by name, each once
	Protect    Protect
	Limits     Limits
	Unattended bool                 // a cleanup without a terminal acts as with --yes
	Thresholds triage.ThresholdBook // of every profile and agent type
	Notify     Notify
	Keys       map[string]string // of the dashboard, by their actions
	Mouse      bool              // the dashboard takes clicks and the wheel
	StateDir   string            // absolute; made on first write. State says whether it can be used
	StoreURL   string            // of Postgres, with its password; "" = SQLite in StateDir
	NoColor    bool
	File       File     // also one that is not there; "" = there is no home directory
	Warnings   []string // what the operator has to know of the files
	Remarks    []string // settings that are accepted and odd; doctor and `config explain` tell them

	named       []string // what --provider or SBX_PROVIDER names
	byFlag      bool     // named comes from the flag
	run         Run
	runMistakes []error // of environment variables that only launching reads

	stateErr error // why StateDir cannot be used; nil = it can

	values  []Value
	secrets []string
}

// Profile is one provider profile with what sbx may do to its sandboxes.
type Profile struct {
	providers.Profile
	providers.Facts // of its type
	Owned           Owned
	// MaxSandboxes is how many of it may run at once; 0 = nobody has said.
	MaxSandboxes int
	Metadata     sandbox.Metadata // which labels of its sandboxes mean what
	Implicit     bool             // switched on by its environment variable, in no file
	Production   bool             // bulk endings need --production with its name
	Account      string           // which account it is, without its secret; "" = none
}

// OwnerUnset says that nobody has configured whose the sandboxes are, so that only those with the
// label of sbx count as ours.
func (p Profile) OwnerUnset() bool { return p.Owned.Has != "" }

// String names the profile and its type, never its settings.
func (p Profile) String() string { return p.Name + " (" + p.Type + ")" }

// GoString is String: settings hold secrets.
func (p Profile) GoString() string { return p.String() }

// String says nothing about the settings: they hold secrets.
func (c *Config) String() string { return "configuration of " + joinWords(c.profileNames()) }

// GoString is String.
func (c *Config) GoString() string { return c.String() }

// Find gives the profile of that exact name.
func (c *Config) Find(name string) (Profile, bool) {
	i := slices.IndexFunc(c.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return c.Profiles[i], true
}

// Selected gives the profiles that verbs work on: those of Use in its order,
// else all by name.
func (c *Config) Selected() []Profile {
	if c.Use == nil {
		return slices.Clone(c.Profiles)
	}
	chosen := make([]Profile, 0, len(c.Use))
	for _, name := range c.Use {
		if p, ok := c.Find(name); ok {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// LaunchTarget gives the profile that create goes to: --provider, else
// SBX_PROVIDER, else `launch`, else the type that is always there. A production
// profile is fault.KindRefused unless the flag names it;
// several named profiles are fault.KindUsage.
func (c *Config) LaunchTarget() (Profile, error) {
	name := c.Launch
	switch {
	case len(c.named) > 1:
		return Profile{}, fault.Usage("a sandbox is created at one provider, not at %s", joinWords(c.named)).
			WithHint("name one with --provider")
	case len(c.named) == 1:
		name = c.named[0]
	}
	p, ok := c.Find(name)
	if !ok {
		return Profile{}, fault.Usage("no profile to create a sandbox at").WithHint("name one with --provider, or set launch")
	}
	if p.Production && !c.byFlag {
		return Profile{}, fault.New(fault.KindRefused, "profile %s is production and never the default for a create", p.Name).
			WithHint("name it: --provider %s", p.Name)
	}
	return p, nil
}

// Secrets lists every secret of the effective settings, for redaction. Each is
// non-empty and stands once.
func (c *Config) Secrets() []string { return slices.Clone(c.secrets) }

func (c *Config) profileNames() []string {
	names := make([]string, len(c.Profiles))
	for i, p := range c.Profiles {
		names[i] = p.Name
	}
	return names
}
