package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
)

// said is what one variable says of a setting.
type said struct {
	variable string
	text     string
	amount   int64
}

// runDefaults lays the defaults and the flags of task launch.
func (l *loader) runDefaults() {
	for _, s := range runSettings() {
		l.layers.byDefault(s.settingKey(), entry{text: s.fallback, origin: originDefault})
		if text, set := l.in.Flags[s.flag]; s.flag != "" && set {
			if err := s.checkText(text); err != nil {
				l.addError("flag --%s: %w%s", s.flag, err, withUnsetHint(text))
			}
			l.layers.byFlag(s.settingKey(), entry{text: text, origin: "flag --" + s.flag})
		}
	}
}

// runEnvironment lays what the variables of the sources say over the files. A
// mistake is kept for the verbs that launch and stops no other: these variables
// belong to other programs too.
func (l *loader) runEnvironment() {
	found := map[string][]said{}
	for _, v := range runVariables() {
		text, set := l.in.Process.Lookup(v.name)
		if !set {
			continue
		}
		value, err := v.translate(text)
		if err != nil {
			l.config.runMistakes = append(l.config.runMistakes, fault.Usage("env %s: %w", v.name, err).WithHint("%s", v.unsetHint()))
			l.runRefused(v)
			continue
		}
		n, _ := runSettingOf(v.setting).parseSetting(value) // a text has none and one variable only
		found[v.setting] = append(found[v.setting], said{v.name, value, n})
	}
	for _, s := range runSettings() {
		if list := found[s.name]; len(list) > 0 {
			l.runSaid(s, list)
		}
	}
}

// runRefused keeps the origin of a variable that cannot be used.
func (l *loader) runRefused(v runVariable) {
	if l.refusedVariables == nil {
		l.refusedVariables = map[string][]string{}
	}
	key := keyRun + "." + v.setting
	l.refusedVariables[key] = append(l.refusedVariables[key], v.name)
}

// runSaid settles what several variables say of one limit: the smallest holds,
// and where they differ somebody has to hear of it.
func (l *loader) runSaid(s runSetting, list []said) {
	least := slices.MinFunc(list, func(a, b said) int { return cmp.Compare(a.amount, b.amount) })
	var same, other []string
	for _, v := range list {
		if v.amount == least.amount {
			same = append(same, v.variable)
		} else {
			other = append(other, v.variable+" ("+v.text+")")
		}
	}
	l.mergeLayer(map[string]entry{s.settingKey(): {text: least.text, origin: "env " + strings.Join(same, ", ")}})
	if _, byFlag := l.in.Flags[s.flag]; byFlag && s.flag != "" {
		return
	}
	if len(other) > 0 {
		l.runWarnings = append(l.runWarnings, fmt.Sprintf("%s: %s holds, the smallest: %s differs from %s",
			s.name, least.text, joinWords(same), joinWords(other)))
	}
}

// explainRun shows the settings of task launch. Where a variable cannot be used
// there is no value, since nothing is launched before that is corrected.
func (l *loader) explainRun() {
	for _, s := range runSettings() {
		e, _ := l.layers.lookup(s.settingKey())
		if names := l.refusedVariables[s.settingKey()]; len(names) > 0 {
			e = entry{origin: "env " + joinWords(names) + " (refused)"}
		}
		if s.kind == kindAddress {
			e.text = withoutQuery(e.text)
		}
		if strings.HasPrefix(e.origin, "env ") && s.remoteOnly() && e.text != "" {
			e.origin += " (not for this machine)"
		}
		l.showValue(s.settingKey(), e, false)
	}
}
