package config

import "sbx/internal/fault"

// stack lays defaults, files, environment and flags upon each other. Provider
// options of the environment follow when it is known which profiles take them.
func (l *loader) stack() {
	for _, m := range limits() {
		l.layers.byDefault(m.key(), entry{text: m.fallback, origin: originDefault})
		if text, set := l.in.Flags[m.flag]; m.flag != "" && set {
			if err := check(m.kind, text); err != nil {
				l.fail("flag --%s: %w%s", m.flag, err, unset(text))
			}
			l.layers.byFlag(m.key(), entry{text: text, origin: "flag --" + m.flag})
		}
	}
	l.runDefaults()
	l.metadataDefaults()
	for _, doc := range l.docs {
		l.merge(doc.scalars)
	}
	l.hereEntries()
	l.runEnvironment()
	if text := l.in.Process.Getenv(EnvProvider); text != "" {
		l.merge(map[string]entry{keyUse: {text: text, origin: "env " + EnvProvider}})
	}
	if text, set := l.in.Flags[flagProvider]; set {
		l.layers.byFlag(keyUse, entry{text: text, origin: "flag --" + flagProvider})
	}
	l.colour()
	l.store()
}

func (l *loader) colour() {
	l.layers.byDefault(keyNoColor, entry{text: "false", origin: originDefault})
	if text := l.in.Process.Getenv(EnvNoColor); text != "" {
		l.merge(map[string]entry{keyNoColor: {text: boolWord(text), origin: "env " + EnvNoColor}})
	}
	if text, set := l.in.Flags[flagNoColor]; set {
		l.layers.byFlag(keyNoColor, entry{text: boolWord(text), origin: "flag --" + flagNoColor})
	}
	e, _ := l.layers.get(keyNoColor)
	l.config.NoColor = e.text == "true"
}

// unset adds to an error about an empty text where such a text comes from.
func unset(text string) string {
	if text == "" {
		return " (is a shell variable unset?)"
	}
	return ""
}

func boolWord(text string) string {
	if text == "0" || text == "false" {
		return "false"
	}
	return "true"
}

func (l *loader) merge(batch map[string]entry) {
	if err := l.layers.merge(batch); err != nil {
		l.fail("settings cannot be merged: %w", err)
	}
}

func (l *loader) fail(format string, args ...any) {
	l.errs = append(l.errs, fault.Usage(format, args...).WithHint("`sbx config explain` and `sbx config path` show what is read"))
}
