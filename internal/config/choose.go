package config

import (
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/yamltext"
)

// possibleProfileNames gives the names that profiles may have while a file is broken.
func (l *loader) possibleProfileNames() []string {
	names := slices.Clone(l.doc.named)
	for _, t := range l.in.Types {
		if t.Always || l.isSwitchedOn(t) {
			names = append(names, t.Name)
		}
	}
	return names
}

// checkNames judges the profile names of the file, also where a flag or a variable overrides them.
func (l *loader) checkNames(known []string) {
	l.checkEachName(keyUse, l.doc.use, known)
	if e, ok := l.doc.scalars[keyLaunch]; ok {
		l.checkEachName(keyLaunch, []word{{e.text, l.doc.places[keyLaunch]}}, known)
	}
	// what is not switched on in this run may be production all the same
	l.checkEachName(keyProduction, l.doc.production, append(slices.Clone(known), l.switchableTypes()...))
}

func (l *loader) checkEachName(key string, words []word, known []string) {
	for _, w := range words {
		if !slices.Contains(known, w.text) {
			l.errs = append(
				l.errs,
				l.withProfileHint(mistakeAt(l.doc.path, w.at, "%s: there is no profile %s%s", key, yamltext.QuoteKey(w.text), suggestAllowed(w.text, known)), w.text),
			)
		}
	}
}

func (l *loader) switchableTypes() []string {
	var names []string
	for _, t := range l.in.Types {
		if len(t.SwitchedOn) > 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

// withProfileHint adds how a profile of that name comes to be, where a variable does it.
func (l *loader) withProfileHint(err error, name string) error {
	if i := slices.IndexFunc(l.config.Sources, func(p Profile) bool { return p.Name == name }); i >= 0 {
		target := l.config.Sources[i].Settings[providers.OptionAttach]
		return fault.Usage("%w", err).WithHint("%s is only a source for sandboxes of %s; name that profile", name, target)
	}
	if hint := AbsentProfileHint(l.in.Types, l.config.profileNames(), name); hint != "" {
		return fault.Usage("%w", err).WithHint("%s", hint)
	}
	return err
}

// AbsentProfileHint says how a profile comes to be that bears the name of a provider type, or nearly: variables
// switch it on, or the configuration makes it. "" = it is none, or a known profile is as near.
func AbsentProfileHint(types []providers.Type, known []string, name string) string {
	t, named := findType(types, name)
	if !named && fault.Nearest(name, known) == "" {
		t, _ = findType(types, fault.Nearest(name, typeNames(types)))
	}
	variables := strings.Join(t.SwitchedOn, " and ")
	written := "`providers: {" + t.Name + ": {type: " + t.Name + "}}` in the configuration makes it; docs/PROVIDERS.md has its settings"
	mean := ""
	if !named {
		mean = "did you mean " + t.Name + "? "
	}
	switch {
	case t.Name == "" || t.Always || t.Attach != nil:
		return ""
	case variables == "":
		return mean + written
	case named && !slices.ContainsFunc(t.Options, func(o providers.Option) bool { return o.Secret }):
		return "set " + variables + " to switch the profile " + name + " on, or " + written
	case named:
		return "set " + variables + " to switch the profile " + name + " on"
	default:
		return mean + "Set " + variables + " to switch it on"
	}
}

// chooseProfiles settles which profiles verbs work on and where creates go.
func (l *loader) chooseProfiles() {
	known := l.config.profileNames()
	l.checkNames(known)
	if e, ok := l.layers.lookup(keyUse); ok {
		l.config.Use = l.chosenNames(e, known)
	}
	if e, ok := l.layers.lookup(keyLaunch); ok {
		l.config.Launch = e.text
	} else {
		l.config.Launch = l.defaultLaunchProfile()
	}
}

// chosenNames reads the winner among the sources of `use`. What a file says has been
// judged already.
func (l *loader) chosenNames(e entry, known []string) []string {
	byFlag, byEnv := e.origin == "flag --"+flagProvider, e.origin == "env "+EnvProvider
	var names []string
	for name := range strings.SplitSeq(e.text, ",") {
		switch {
		case slices.Contains(names, name):
			continue
		case (byFlag || byEnv) && name == "":
			l.addError("%s: names an empty profile (is a shell variable unset?)", e.origin)
		case (byFlag || byEnv) && !slices.Contains(known, name):
			l.errs = append(l.errs, l.withProfileHint(fault.Usage("%s: there is no profile %q%s", e.origin, name, suggestAllowed(name, known)).
				WithHint("`sbx providers` lists the profiles"), name))
		}
		names = append(names, name)
	}
	if byFlag || byEnv {
		l.config.named, l.config.byFlag = names, byFlag
	}
	return names
}

// defaultLaunchProfile is where creates go without any configuration: the profile of the
// first type that is a default of launching, under whatever name it is configured.
func (l *loader) defaultLaunchProfile() string {
	for _, t := range l.in.Types {
		i := slices.IndexFunc(l.config.Profiles, func(p Profile) bool { return t.LaunchDefault && p.Type == t.Name })
		if i >= 0 {
			return l.config.Profiles[i].Name
		}
	}
	return ""
}
