package config

// widened finds what a project file may not do to a setting of task launch,
// measured against the user's file and the default.
func (s runSetting) widened(project, user *document) []word {
	e, ok := project.scalars[s.key()]
	if !ok {
		return nil
	}
	before := s.fallback
	if mine, ok := user.scalars[s.key()]; ok {
		before = mine.text
	}
	if e.text == before {
		return nil
	}
	if text := s.widening(before, e.text); text != "" {
		return []word{{"a project file may not " + text, project.places[s.key()]}}
	}
	return nil
}

// widening says in words what a change widens; "" = it narrows. Addresses are not
// quoted.
func (s runSetting) widening(before, text string) string {
	was, errWas := s.amount(before)
	is, errIs := s.amount(text)
	known := errWas == nil && errIs == nil
	switch {
	case s.project == mayEnable && text != wordTrue:
		return "switch " + s.key() + " off"
	case s.project == mayEnable:
		return ""
	case s.project == mayNothing && s.kind == kindAddress:
		return "set " + s.key()
	case s.project == mayNothing || before == "":
		return "set " + s.key() + ", here to " + text
	case s.project == mayLower && (!known || is > was):
		return "raise " + s.key() + " above " + before + ", here to " + text
	case s.project == mayRaise && (!known || is < was):
		return "lower " + s.key() + " below " + before + ", here to " + text
	}
	return ""
}
