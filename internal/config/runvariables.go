package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// unit is what the number of a variable counts. Each variable keeps the unit
// that its source gave it.
type unit string

const (
	inSeconds unit = "seconds"
	inMillis  unit = "milliseconds"
	inGiB     unit = "GiB"
	inCores   unit = "cores"
	inWords   unit = "" // a text or a switch
)

// runVariable is one environment variable of the sources as data.
type runVariable struct {
	name        string
	setting     string // below `run:`
	unit        unit
	least, most int64  // of a number, both allowed
	fallback    string // what the source takes without it; sbx has defaults of its own
	source      string
}

// Limits of a duration: one that is longer than a day, or shorter than a second,
// is most likely written in the unit of another variable.
const (
	daySeconds = 24 * 60 * 60
	milli      = 1000
)

const (
	sourceKilled  = "SIGKILL in Novita sandboxes"
	sourceStop    = "stop and timeout fixes at Vercel"
	sourceControl = "OmoiOS sandbox workers"
	sourceStuck   = "runbook of stuck sandboxes"
)

// runVariables are the variables of the sources. AGENT_TIMEOUT bounds one
// execution of the agent, whatever it prints: that is a command timeout, not the
// silence of AGENT_INACTIVITY_TIMEOUT_MS, although both are 60 s there.
func runVariables() []runVariable {
	return []runVariable{
		{"SANDBOX_TIMEOUT", nameAttempt, inSeconds, 1, daySeconds, "600", sourceKilled},
		{"CLAUDE_CODE_TIMEOUT", nameCommand, inSeconds, 1, daySeconds, "300", sourceKilled},
		{"AGENT_MAX_WAIT_TIME_MS", nameCommand, inMillis, milli, daySeconds * milli, "300000", sourceStop},
		{"AGENT_TIMEOUT", nameCommand, inMillis, milli, daySeconds * milli, "60000", sourceStuck},
		{"AGENT_INACTIVITY_TIMEOUT_MS", nameInactivity, inMillis, milli, daySeconds * milli, "60000", sourceStop},
		{"SANDBOX_MEMORY_GB", nameMemory, inGiB, 4, 8, "4", sourceControl},
		{"SANDBOX_CPU", nameCPU, inCores, 2, 4, "2", sourceControl},
		{"SANDBOX_DISK_GB", nameDisk, inGiB, 8, 10, "8", sourceControl},
		{"SANDBOX_SNAPSHOT", nameSnapshot, inWords, 0, 0, "ai-agent-dev-light", sourceControl},
		{"SANDBOX_IMAGE", nameImage, inWords, 0, 0, "", sourceControl},
		{"CALLBACK_URL", nameCallback, inWords, 0, 0, "", sourceControl},
		{"ENABLE_DB_BACKED_STOP", "db_backed_stop", inWords, 0, 0, wordTrue, sourceStop},
		{"ENABLE_CANCELLATION_CHECKS", "cancellation_checks", inWords, 0, 0, wordTrue, sourceStop},
		{"ENABLE_HEALTH_PROBE", "health_probe", inWords, 0, 0, wordTrue, sourceStop},
		{"ENABLE_INACTIVITY_TIMEOUT", "inactivity_timeout", inWords, 0, 0, wordTrue, sourceStop},
		{"ENABLE_AUTHORITATIVE_TIMEOUT", "authoritative_timeout", inWords, 0, 0, wordTrue, sourceStop},
	}
}

// translate turns the text of the variable into that of its setting. Only a variable
// that is there is read, so an empty one is a mistake: an unset shell variable is
// not "no limit".
func (v runVariable) translate(text string) (string, error) {
	s := runSettingOf(v.setting)
	switch {
	case text == "":
		return "", errors.New("is empty (is a shell variable unset?)")
	case s.kind == providers.OptionBool:
		return switchWord(text)
	case v.unit == inWords:
		return text, s.checkText(text)
	}
	n, ok := digitsOf(text)
	if !ok || n < v.least || n > v.most {
		return "", fmt.Errorf("must be a whole number of %s from %d to %d, not %s", v.unit, v.least, v.most, quoteClipped(text))
	}
	number := strconv.FormatInt(n, 10)
	switch {
	case v.unit == inGiB:
		return number + "G", nil
	case v.unit == inSeconds:
		return number + "s", nil
	case v.unit == inMillis && n%milli == 0:
		return strconv.FormatInt(n/milli, 10) + "s", nil
	case v.unit == inMillis:
		return number + unitMilli, nil
	}
	return number, nil
}

func switchWord(text string) (string, error) {
	switch text {
	case wordTrue, "1":
		return wordTrue, nil
	case wordFalse, "0":
		return wordFalse, nil
	}
	return "", fmt.Errorf("must be true, false, 1 or 0, not %s", quoteClipped(text))
}

// quoteClipped quotes a text that may be of any length and any bytes.
func quoteClipped(text string) string {
	const longest = 40
	if len(text) <= longest {
		return strconv.Quote(text)
	}
	end := longest
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strconv.Quote(text[:end]) + "..."
}

func (v runVariable) acceptedValues() string {
	switch s := runSettingOf(v.setting); {
	case v.unit != inWords:
		return fmt.Sprintf("%d to %d", v.least, v.most)
	case s.kind == providers.OptionBool:
		return "true, false, 1, 0"
	case s.kind == kindAddress:
		return "an http or https address"
	}
	return "a name"
}

// unsetHint says how to get rid of a mistake in the variable.
func (v runVariable) unsetHint() string {
	takes := v.acceptedValues()
	if v.unit != inWords {
		takes += " " + string(v.unit)
	}
	return fmt.Sprintf("%s sets %s%s of task launch and accepts %s; correct it, or `unset %s`", v.name, keyRun+".", v.setting, takes, v.name)
}

// said is what one variable says of a setting.
type said struct {
	variable string
	text     string
	amount   int64
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
// and where they differ the operator is warned.
func (l *loader) runSaid(s setting, list []said) {
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
		l.runWarnings = append(l.runWarnings, fmt.Sprintf("%s: %s applies, the smallest: %s differs from %s",
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
