package config

import (
	"slices"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func (l *loader) isSwitchedOn(t providers.Type) bool {
	return len(t.SwitchedOn) > 0 && !slices.ContainsFunc(t.SwitchedOn, func(name string) bool { return l.in.Process.Getenv(name) == "" })
}

// addImplicitProfile adds the profile of a type that needs no file, unless a configured
// profile is that account already.
func (l *loader) addImplicitProfile(t providers.Type) {
	if i := slices.IndexFunc(l.config.Profiles, func(p Profile) bool { return p.Name == t.Name }); i >= 0 {
		l.refuseShadowedType(l.config.Profiles[i], t)
		return
	}
	if slices.ContainsFunc(l.config.Profiles, func(p Profile) bool { return p.Type == t.Name && l.readsSwitchVariable(p.Name, t) }) {
		return
	}
	p := Profile{Profile: l.resolveOptions(t.Name, t, true), Implicit: true, Owned: Owned{Has: sandbox.LabelOwner}}
	if t.OwnsAll {
		p.Owned = Owned{All: true}
	}
	mine, known := accountOf(p.Profile, t)
	for _, other := range l.config.Profiles {
		if theirs, ok := accountOf(other.Profile, t); known && ok && other.Type == t.Name && mine == theirs {
			return
		}
	}
	l.config.Profiles = append(l.config.Profiles, p)
}

// readsSwitchVariable says that a profile takes its credential from the variable that
// switches the type on: its file says what the variable is for. The key of a
// self-hosted service thus never goes to the provider's public address.
func (l *loader) readsSwitchVariable(profile string, t providers.Type) bool {
	return slices.ContainsFunc(t.Options, func(o providers.Option) bool {
		e, _ := l.layers.lookup(optionKey(profile, o.Name))
		return o.Secret && slices.Contains(t.SwitchedOn, e.variable)
	})
}

// refuseShadowedType refuses a profile that has the name of its type and the credential
// of another account: the account of the environment would silently be missing.
func (l *loader) refuseShadowedType(p Profile, t providers.Type) {
	for _, o := range t.Options {
		text := l.in.Process.Getenv(o.Env)
		if o.Secret && o.Env != "" && text != "" && text != p.Settings[o.Name] {
			l.addError("env %s is another account than profile %s, whose name it would take; rename the profile or unset the variable", o.Env, p.Name)
		}
	}
}
