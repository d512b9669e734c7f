package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/yamltext"
)

// buildProfiles builds the configured profiles, then those that need no
// configuration, and refuses two of one account.
func (l *loader) buildProfiles() {
	l.addConfiguredProfiles()
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

// addConfiguredProfiles makes the profiles of the file.
func (l *loader) addConfiguredProfiles() {
	for _, b := range l.doc.profiles {
		t, _ := findType(l.in.Types, b.kind)
		p := Profile{Owned: ownedByDefault(t), Profile: l.resolveOptions(b.name.text, t, b.name.text == t.Name)}
		if b.owned != nil {
			p.Owned = *b.owned
		}
		l.config.Profiles = append(l.config.Profiles, p)
	}
	slices.SortFunc(l.config.Profiles, func(a, b Profile) int { return cmp.Compare(a.Name, b.Name) })
}

// ownedByDefault is what a profile owns of which the file says nothing: what has the label of sbx, and
// all where sbx alone makes sandboxes.
func ownedByDefault(t providers.Type) Owned {
	if t.OwnsAll {
		return Owned{All: true}
	}
	return Owned{Has: sandbox.LabelOwner}
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
		switch {
		case e.text != "":
			p.Settings[o.Name] = e.text
		case e.variable != "":
			if p.Unset == nil {
				p.Unset = map[string]string{}
			}
			p.Unset[o.Name] = e.variable
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
// file names. A variable that is not set leaves the option empty: opening the profile
// then says which variable it is, and the other providers work.
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
	p := Profile{Profile: l.resolveOptions(t.Name, t, true), Implicit: true, Owned: ownedByDefault(t)}
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
			l.addError("env %s is another account than profile %s, but would get its name; rename the profile or unset the variable", o.Env, p.Name)
		}
	}
}

// separateSources takes the profiles of sources out of those of providers: verbs work on
// sandboxes, which a source neither lists nor ends.
func (l *loader) separateSources() {
	var own []Profile
	for _, p := range l.config.Profiles {
		if t, _ := findType(l.in.Types, p.Type); t.Attach != nil {
			l.config.Sources = append(l.config.Sources, p)
			continue
		}
		own = append(own, p)
	}
	l.config.Profiles = own
}

// checkSourceTargets checks that each source belongs to a profile. One that only its
// environment switches on may be missing in this run.
func (l *loader) checkSourceTargets() {
	known := l.config.profileNames()
	for _, s := range l.config.Sources {
		target := s.Settings[providers.OptionAttach]
		if slices.Contains(known, target) || slices.Contains(l.switchableTypes(), target) {
			continue
		}
		e, _ := l.layers.lookup(optionKey(s.Name, providers.OptionAttach))
		l.addError("%s: %s is attached to %s, and there is no such profile%s", e.origin, s.Name, yamltext.QuoteKey(target), suggestAllowed(target, known))
	}
}

// SourcesOf gives the sources that know more of a profile's sandboxes.
func (c *Config) SourcesOf(profile string) []Profile {
	var found []Profile
	for _, s := range c.Sources {
		if s.Settings[providers.OptionAttach] == profile {
			found = append(found, s)
		}
	}
	return found
}

// Loose gives the sources whose profile is not there in this run.
func (c *Config) Loose() []Profile {
	var found []Profile
	for _, s := range c.Sources {
		if _, ok := c.Find(s.Settings[providers.OptionAttach]); !ok {
			found = append(found, s)
		}
	}
	return found
}

// withCommon adds what the profile of any provider may say beside the options of
// its type. A type that has one of them already gives it a default of its own.
func withCommon(types []providers.Type) []providers.Type {
	all := make([]providers.Type, 0, len(types))
	for _, t := range types {
		if t.Attach == nil {
			t.Options = slices.Clone(t.Options)
			for _, o := range providers.CommonOptions() {
				if !slices.ContainsFunc(t.Options, func(own providers.Option) bool { return own.Name == o.Name }) {
					t.Options = append(t.Options, o)
				}
			}
		}
		all = append(all, t)
	}
	return all
}

// AgeOnly says that a sandbox of this profile whose activity is not known is
// judged by its age.
func (p Profile) AgeOnly() bool {
	return p.Settings[providers.OptionActivity] == providers.ActivityAgeOnly
}

// maxSandboxes is how many may run at once: by the profile, else by the limits of all.
func (p Profile) maxSandboxes(all Limits) int {
	if n, err := parseCount(p.Settings[providers.OptionMaxSandboxes]); err == nil {
		return int(n)
	}
	return all.MaxSandboxes
}

// StuckAfter gives the ages from which a silent sandbox counts as stuck, by agent
// type; the type "" is all others. Nil where the profile says nothing.
func (p Profile) StuckAfter() map[string]time.Duration {
	var texts map[string]string
	if json.Unmarshal([]byte(p.Settings[providers.OptionStuckAfter]), &texts) != nil {
		return nil
	}
	ages := make(map[string]time.Duration, len(texts))
	for kind, text := range texts {
		age, err := sandbox.ParseDuration(text)
		if err != nil {
			continue // it was checked as it was read
		}
		if kind == providers.OptionDefault {
			kind = ""
		}
		ages[kind] = age
	}
	return ages
}
