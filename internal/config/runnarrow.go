package config

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
