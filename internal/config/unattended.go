package config

import "strconv"

const keyUnattended = "cleanup.unattended"

// resolveUnattended reads whether a cleanup without a terminal acts. A word that is no yes or no is a
// mistake: it would decide over sandboxes.
func (l *loader) resolveUnattended() {
	l.layers.byDefault(keyUnattended, entry{text: "false", origin: originDefault})
	if text := l.in.Process.Getenv(EnvUnattended); text != "" {
		if acts, err := strconv.ParseBool(text); err != nil {
			l.addError("env %s: must be 1 or 0", EnvUnattended)
		} else {
			l.mergeLayer(map[string]entry{keyUnattended: {text: strconv.FormatBool(acts), origin: "env " + EnvUnattended}})
		}
	}
	e, _ := l.layers.lookup(keyUnattended)
	l.config.Unattended = e.text == "true"
}
