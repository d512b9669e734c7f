package ops

import (
	"context"
	"slices"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
)

// ProviderAbilities are what a provider can do, and whose account it is.
type ProviderAbilities struct {
	fleet.AbilityRow

	Account string // "" = not known
}

// Abilities are those of the named profiles, of all without any. No provider is called.
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
		return "", fault.New(fault.KindUnsupported, "no local profile is configured, and a drill is staged on this machine only")
	}
	return c.Profiles[i].Name, nil
}
