package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"sbx/internal/providers"
)

// profiles builds the configured profiles, then those that need no
// configuration, and refuses two of one account.
func (l *loader) profiles() {
	l.configured()
	l.twins()
	for _, t := range l.in.Types {
		if t.Always || l.switched(t) {
			l.implicit(t)
		}
	}
	slices.SortFunc(l.config.Profiles, func(a, b Profile) int { return cmp.Compare(a.Name, b.Name) })
}

func (l *loader) switched(t providers.Type) bool {
	return t.SwitchedOn != "" && l.in.Process.Getenv(t.SwitchedOn) != ""
}

// configured merges the blocks of one name over all files.
func (l *loader) configured() {
	owned := map[string]Owned{}
	kinds := map[string]string{}
	for _, doc := range l.docs {
		for _, b := range doc.profiles {
			kinds[b.name.text] = b.kind
			if b.owned != nil {
				owned[b.name.text] = *b.owned
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t, _ := findType(l.in.Types, kinds[name])
		p := Profile{Owned: Owned{All: true}}
		if o, ok := owned[name]; ok {
			p.Owned = o
		}
		p.Profile = l.settings(name, t, name == t.Name)
		l.config.Profiles = append(l.config.Profiles, p)
	}
}

// settings gathers the options of a profile. Only the profile that bears the
// name of its type takes them from the type's environment variables: these
// would otherwise redirect every profile of that type.
func (l *loader) settings(name string, t providers.Type, byEnv bool) providers.Profile {
	p := providers.Profile{Name: name, Type: t.Name, Settings: map[string]string{}}
	for _, o := range t.Options {
		key := optionKey(name, o.Name)
		if o.Default != "" {
			l.option(o, entry{text: o.Default, origin: originDefault}, func(e entry) { l.layers.byDefault(key, e) })
		}
		inFile, _ := l.layers.get(key)
		if text := l.in.Process.Getenv(o.Env); byEnv && o.Env != "" && text != "" && inFile.variable == "" {
			l.option(o, entry{text: text, origin: "env " + o.Env}, func(e entry) { l.merge(map[string]entry{key: e}) })
		}
		if e := l.resolved(key, o); e.text != "" {
			p.Settings[o.Name] = e.text
		}
	}
	return p
}

// option checks a text that is not from a file and lays it where it belongs.
func (l *loader) option(o providers.Option, e entry, lay func(entry)) {
	text, err := normalise(o.Kind, e.text)
	if err != nil {
		l.fail("%s: %s: %w", e.origin, o.Name, discreet(o.Kind, o.Secret, err))
		return
	}
	e.text = text
	lay(e)
}

// resolved gives the entry that holds, with the value of the variable that the
// file names. A variable that is not set leaves the option empty: the provider
// then says what is missing, and the other providers work.
func (l *loader) resolved(key string, o providers.Option) entry {
	e, _ := l.layers.get(key)
	if e.variable == "" {
		return e
	}
	file := e.origin
	e.text, e.origin = l.in.Process.Getenv(e.variable), "env "+e.variable+" by "+file
	if e.text == "" {
		e.origin = "env " + e.variable + " (not set) by " + file
		return e
	}
	if err := check(o.Kind, e.text); err != nil {
		l.fail("env %s: %s: %w", e.variable, o.Name, discreet(o.Kind, o.Secret, err))
	}
	return e
}

// discreet keeps the text of a secret out of the error about it.
func discreet(kind providers.OptionKind, secret bool, err error) error {
	if !secret || kind == providers.OptionText {
		return err // the check of a text never quotes it
	}
	return errors.New("must be written like " + sample(kind))
}

// implicit adds the profile of a type that needs no file, unless a configured
// profile is that account already.
func (l *loader) implicit(t providers.Type) {
	if i := slices.IndexFunc(l.config.Profiles, func(p Profile) bool { return p.Name == t.Name }); i >= 0 {
		l.shadowed(l.config.Profiles[i], t)
		return
	}
	if slices.ContainsFunc(l.config.Profiles, func(p Profile) bool { return p.Type == t.Name && l.reads(p.Name, t) }) {
		return
	}
	p := Profile{Profile: l.settings(t.Name, t, true), Implicit: true, Owned: Owned{Has: LabelOwner}}
	if t.Always {
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

// reads says that a profile takes its credential from the variable that
// switches the type on: its file says what the variable is for. The key of a
// self-hosted service thus never goes to the provider's public address.
func (l *loader) reads(profile string, t providers.Type) bool {
	return slices.ContainsFunc(t.Options, func(o providers.Option) bool {
		e, _ := l.layers.get(optionKey(profile, o.Name))
		return o.Secret && e.variable != "" && e.variable == t.SwitchedOn
	})
}

// shadowed refuses a profile that has the name of its type and the credential
// of another account: the account of the environment would silently be missing.
func (l *loader) shadowed(p Profile, t providers.Type) {
	for _, o := range t.Options {
		text := l.in.Process.Getenv(o.Env)
		if o.Secret && o.Env != "" && text != "" && text != p.Settings[o.Name] {
			l.fail("env %s is another account than profile %s, whose name it would take; rename the profile or unset the variable", o.Env, p.Name)
		}
	}
}

// twins refuses two configured profiles of one account: one sandbox would be
// listed, counted and ended twice.
func (l *loader) twins() {
	first := map[account]string{}
	for _, p := range l.config.Profiles {
		t, _ := findType(l.in.Types, p.Type)
		id, known := accountOf(p.Profile, t)
		if !known {
			continue
		}
		if other, twice := first[id]; twice {
			l.fail("%s: profile %s is the same account as profile %s; keep one", l.whereIs(p.Name), p.Name, other)
		}
		first[id] = p.Name
	}
}

// whereIs names the place of a profile in the strongest file that has it.
func (l *loader) whereIs(profile string) string {
	for _, doc := range slices.Backward(l.docs) {
		for _, b := range doc.profiles {
			if b.name.text == profile {
				return doc.origin(b.name.at)
			}
		}
	}
	return originDefault
}
