package config

import (
	"slices"
	"strings"

	"sbx/internal/fault"
)

// untrustedRefusals lists what an untrusted project file widens, one fault.KindRefused
// each; none means that the file only narrows or is trusted.
func (l *loader) untrustedRefusals() []error {
	if !l.hasUntrustedProject() {
		return nil
	}
	var errs []error
	for _, w := range l.projectWidenings() {
		err := fault.New(fault.KindRefused, "%s:%d:%d: %s", l.project, w.at.line, w.at.column, w.text).
			WithHint("read the file; if it is right: sbx config trust %s", l.project)
		errs = append(errs, err)
	}
	return errs
}

func (l *loader) hasUntrustedProject() bool {
	return slices.ContainsFunc(l.files, func(f File) bool { return f.Role == RoleProject && !f.Trusted })
}

// projectWidenings lists everything in the project file that redirects, runs or
// widens, by its place, measured against user file and defaults: environment
// and flags are the operator's own and may do what they like.
func (l *loader) projectWidenings() []word {
	i := l.projectIndex()
	if i < 0 {
		return nil
	}
	project, user := l.docs[i], newDocument("")
	if i > 0 {
		user = l.docs[i-1]
	}
	var found []word
	for _, b := range project.profiles {
		found = append(found, word{"a project file may not configure provider profiles, here " + b.name.text, b.name.at})
	}
	found = append(found, l.otherUse(project, user)...)
	if e, ok := project.scalars[keyLaunch]; ok && e.text != l.launchWithout(user) {
		found = append(found, word{"a project file may not set where launches go, here to " + e.text, project.places[keyLaunch]})
	}
	if e, ok := project.scalars[keyStoreURL]; ok && e.text != user.scalars[keyStoreURL].text {
		found = append(found, word{"a project file may not set the store", project.places[keyStoreURL]})
	}
	for _, m := range limitSettings() {
		found = append(found, raisedLimits(m, project, user)...)
	}
	for _, s := range runSettings() {
		found = append(found, s.findWidenings(project, user)...)
	}
	found = append(found, remappedLabels(project, user)...)
	found = append(found, thresholdsInProject(project)...)
	found = append(found, notifyWidenings(project)...)
	found = append(found, keysInProject(project)...)
	slices.SortFunc(found, func(a, b word) int { return a.at.line*maxFile + a.at.column - b.at.line*maxFile - b.at.column })
	return found
}

// projectIndex is the place of the project file among the documents; -1 = there is none.
func (l *loader) projectIndex() int {
	return slices.IndexFunc(l.docs, func(d *document) bool { return l.project != "" && d.path == l.project })
}

func (l *loader) launchWithout(user *document) string {
	if e, ok := user.scalars[keyLaunch]; ok {
		return e.text
	}
	return l.defaultLaunchProfile()
}

// otherUse finds profiles that the operator's own choice does not hold.
func (l *loader) otherUse(project, user *document) []word {
	if project.use == nil || user.use == nil {
		return nil // without a choice all are in use, and a choice among all narrows
	}
	allowed := wordTexts(user.use.words)
	var found []word
	for _, w := range project.use.words {
		if !slices.Contains(allowed, w.text) {
			found = append(found, word{"a project file may only choose among " + joinWords(allowed) + ", not " + w.text, w.at})
		}
	}
	return found
}

func raisedLimits(m limit, project, user *document) []word {
	e, ok := project.scalars[m.settingKey()]
	if !ok {
		return nil
	}
	before := m.fallback
	if mine, ok := user.scalars[m.settingKey()]; ok {
		before = mine.text
	}
	switch {
	case m.widens && e.text != before:
		return []word{{"a project file may not set " + m.settingKey() + ": --if-usage-above uses it as the quota", project.places[m.settingKey()]}}
	case before == "":
		return nil // without a limit, any narrows
	}
	was, errWas := parseAmount(m.kind, before)
	is, errIs := parseAmount(m.kind, e.text)
	if errWas == nil && errIs == nil && is <= was {
		return nil
	}
	return []word{{"a project file may not raise " + m.settingKey() + " above " + before + ", here to " + e.text, project.places[m.settingKey()]}}
}

// trustedWidenings is what trust in the project file allows, in words.
func (l *loader) trustedWidenings() []string {
	var lines []string
	for _, w := range l.projectWidenings() {
		lines = append(lines, strings.Replace(w.text, "may not", "may", 1))
	}
	return lines
}

// findWidenings finds what a project file may not do to a setting of task launch,
// measured against the user's file and the default.
func (s runSetting) findWidenings(project, user *document) []word {
	e, ok := project.scalars[s.settingKey()]
	if !ok {
		return nil
	}
	before := s.fallback
	if mine, ok := user.scalars[s.settingKey()]; ok {
		before = mine.text
	}
	if e.text == before {
		return nil
	}
	if text := s.describeWidening(before, e.text); text != "" {
		return []word{{"a project file may not " + text, project.places[s.settingKey()]}}
	}
	return nil
}

// describeWidening says in words what a change widens; "" = it narrows. Addresses are not
// quoted.
func (s runSetting) describeWidening(before, text string) string {
	was, errWas := s.parseSetting(before)
	is, errIs := s.parseSetting(text)
	known := errWas == nil && errIs == nil
	switch {
	case s.project == mayEnable && text != wordTrue:
		return "switch " + s.settingKey() + " off"
	case s.project == mayEnable:
		return ""
	case s.project == mayNothing && s.kind == kindAddress:
		return "set " + s.settingKey()
	case s.project == mayNothing || before == "":
		return "set " + s.settingKey() + ", here to " + text
	case s.project == mayLower && (!known || is > was):
		return "raise " + s.settingKey() + " above " + before + ", here to " + text
	case s.project == mayRaise && (!known || is < was):
		return "lower " + s.settingKey() + " below " + before + ", here to " + text
	}
	return ""
}
