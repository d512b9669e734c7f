package config

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"sbx/internal/providers"
)

// buildProfiles builds the configured profiles, then those that need no
// configuration, and refuses two of one account.
func (l *loader) buildProfiles() {
	l.mergeConfiguredProfiles()
	l.refuseDuplicateAccounts()
	for _, t := range l.in.Types {
		if t.Always || l.isSwitchedOn(t) {
			l.addImplicitProfile(t)
		}
	}
	for i, p := range l.config.Profiles {
		if t, ok := findType(l.in.Types, p.Type); ok {
			l.config.Profiles[i].Account = nameAccount(p.Profile, t)
			l.config.Profiles[i].Facts = t.Facts
			l.config.Profiles[i].Metadata = l.metadataOf(p.Name)
		}
	}
	l.separateSources()
	l.checkSourceTargets()
	slices.SortFunc(l.config.Profiles, func(a, b Profile) int { return cmp.Compare(a.Name, b.Name) })
}

// mergeConfiguredProfiles merges the blocks of one name over all files.
func (l *loader) mergeConfiguredProfiles() {
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
		p.Profile = l.resolveOptions(name, t, name == t.Name)
		l.config.Profiles = append(l.config.Profiles, p)
	}
}

// resolveOptions gathers the options of a profile. Only the profile that bears the
// name of its type takes them from the type's environment variables: these
// would otherwise redirect every profile of that type.
func (l *loader) resolveOptions(name string, t providers.Type, byEnv bool) providers.Profile {
	p := providers.Profile{Name: name, Type: t.Name, Settings: map[string]string{}}
	for _, o := range t.Options {
		key := optionKey(name, o.Name)
		if o.Default != "" {
			l.placeOption(o, entry{text: o.Default, origin: originDefault}, func(e entry) { l.layers.byDefault(key, e) })
		}
		inFile, _ := l.layers.lookup(key)
		if text := l.in.Process.Getenv(o.Env); byEnv && o.Env != "" && text != "" && inFile.variable == "" {
			l.placeOption(o, entry{text: text, origin: "env " + o.Env}, func(e entry) { l.mergeLayer(map[string]entry{key: e}) })
		}
		e := l.resolveEntry(key, o)
		if e.text != "" {
			p.Settings[o.Name] = e.text
		}
		if len(e.command) > 0 {
			if p.Commands == nil {
				p.Commands = map[string][]string{}
			}
			p.Commands[o.Name] = e.command
		}
	}
	return p
}

// placeOption checks a text that is not from a file and lays it where it belongs.
func (l *loader) placeOption(o providers.Option, e entry, lay func(entry)) {
	text, err := normalizeOption(o, e.text)
	if err != nil {
		l.addError("%s: %s: %w", e.origin, o.Name, withoutSecretText(o.Kind, o.Secret, err))
		return
	}
	e.text = text
	lay(e)
}

// resolveEntry gives the entry that holds, with the value of the variable that the
// file names. A variable that is not set leaves the option empty: the provider
// then says what is missing, and the other providers work.
func (l *loader) resolveEntry(key string, o providers.Option) entry {
	e, _ := l.layers.lookup(key)
	if e.variable == "" { // what a command gives is asked for when the profile is opened
		return e
	}
	file := e.origin
	e.text, e.origin = l.in.Process.Getenv(e.variable), "env "+e.variable+" by "+file
	if e.text == "" {
		e.origin = "env " + e.variable + " (not set) by " + file
		return e
	}
	if err := checkKind(o.Kind, e.text); err != nil {
		l.addError("env %s: %s: %w", e.variable, o.Name, withoutSecretText(o.Kind, o.Secret, err))
	}
	return e
}

// withoutSecretText keeps the text of a secret out of the error about it.
func withoutSecretText(kind providers.OptionKind, secret bool, err error) error {
	if !secret || kind == providers.OptionText {
		return err // the check of a text never quotes it
	}
	return errors.New("must be written like " + sampleOfKind(kind))
}
