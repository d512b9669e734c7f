package ops

import (
	"context"
	"slices"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
)

// ProviderAbilities are what a provider can do, and whose account it is.
type ProviderAbilities struct {
	fleet.AbilityRow

	Account string // "" = not known
}

// Abilities are the abilities of the named profiles, of all without any. No provider is called.
func Abilities(ctx context.Context, env *Env, names []string) ([]ProviderAbilities, error) {
	f, err := env.Only(ctx, names...) // also those that `use` leaves out
	if err != nil {
		return nil, err
	}
	var all []ProviderAbilities
	c, err := env.Config()
	for _, row := range f.Abilities() {
		a := ProviderAbilities{AbilityRow: row}
		if err == nil {
			profile, _ := c.Find(row.Provider)
			a.Account = profile.Account
		}
		all = append(all, a)
	}
	return all, nil
}

// HostFleet opens the profile whose sandboxes are processes of this machine.
func (e *Env) HostFleet(ctx context.Context) (*fleet.Fleet, string, error) {
	c, err := e.Config()
	if err != nil {
		return nil, "", err
	}
	name, err := hostProfile(c)
	if err != nil {
		return nil, "", err
	}
	f, err := e.Only(ctx, name)
	return f, name, err
}

func hostProfile(c *config.Config) (string, error) {
	i := slices.IndexFunc(c.Profiles, func(p config.Profile) bool { return p.HostProcesses })
	if i < 0 {
		return "", fault.New(fault.KindUnsupported, "a drill needs a local profile, and none is configured")
	}
	return c.Profiles[i].Name, nil
}

// SelectedNames are the names of the profiles that verbs work on.
func (e *Env) SelectedNames() ([]string, error) {
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range c.Selected() {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return nil, fault.Usage("no profile is selected").WithHint("`%s providers` lists them", e.Process.Name())
	}
	return names, nil
}

// SplitByQuota parts profiles by whether it can be known how much of a quota they use.
func (e *Env) SplitByQuota(profiles []config.Profile) (known, unknown []string) {
	for _, p := range profiles {
		if e.TypeOf(p).TellsQuota || p.MaxSandboxes > 0 {
			known = append(known, p.Name)
		} else {
			unknown = append(unknown, p.Name)
		}
	}
	return known, unknown
}

// TypeOf is the type of a profile; the zero Type for one that this program does not know.
func (e *Env) TypeOf(p config.Profile) providers.Type { return e.typeNamed(p.Type) }

func (e *Env) typeNamed(name string) providers.Type {
	i := slices.IndexFunc(e.Types, func(t providers.Type) bool { return t.Name == name })
	if i < 0 {
		return providers.Type{}
	}
	return e.Types[i]
}

// ProfileFacts are the facts of a profile's type; none where it is not configured.
func (e *Env) ProfileFacts(name string) providers.Facts {
	c, err := e.Config()
	if err != nil {
		return providers.Facts{}
	}
	p, _ := c.Find(name)
	return p.Facts
}

// ProductionNames are the names of the production profiles; none where the configuration cannot be read.
func (e *Env) ProductionNames() []string {
	c, err := e.Config()
	if err != nil {
		return nil
	}
	return c.Production
}
