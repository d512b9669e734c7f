package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sbx/internal/sandbox"
	"sbx/internal/yamltext"
)

// taskProvider is the one key of a task that is no flag of run alone.
const taskProvider = "provider"

// taskKind is what a key of a task takes.
type taskKind int

const (
	taskText taskKind = iota
	taskDuration
	taskSize
	taskCount
	taskNumber
	taskSwitch
	taskWords
	taskEnv
	taskLabels
)

// taskKeys are the keys of a task and of `defaults`, each with its flag of run.
func taskKeys() map[string]struct {
	flag string
	kind taskKind
} {
	type entry = struct {
		flag string
		kind taskKind
	}
	keys := map[string]entry{"labels": {"label", taskLabels}}
	for kind, names := range map[taskKind][]string{
		taskText:     {"provider", "workdir", "push", "publish", "base", "session", "template", "snapshot", "image", "agent_type", "isolate"},
		taskDuration: {"ttl", "command_timeout", "attempt_timeout", "deadline", "inactivity", "retry_delay", "keep_for"},
		taskSize:     {"memory", "disk"},
		taskCount:    {"attempts", "pids"},
		taskSwitch:   {"keep_alive", "require_hard_limit"},
		taskNumber:   {"cpu"},
		taskWords:    {"env_file", "retry_on", "fallback"},
		taskEnv:      {"env"},
		taskLabels:   {},
	} {
		for _, name := range names {
			keys[name] = entry{strings.ReplaceAll(name, "_", "-"), kind}
		}
	}
	return keys
}

// settingReaders are readers of all keys that put what they read into a place.
func (r *taskReader) settingReaders(into taskSettings) readers {
	all := readers{}
	for name, k := range taskKeys() {
		all[name] = r.settingReader(into, k.flag, k.kind)
	}
	return all
}

func (r *taskReader) settingReader(into taskSettings, flag string, kind taskKind) func(value) {
	return func(v value) {
		var values []string
		switch kind {
		case taskWords:
			values = r.wordOrWords(v)
		case taskEnv:
			values = r.readVariables(v)
		case taskLabels:
			values = r.readMapped(v)
		default:
			values = r.readScalar(v, kind)
		}
		if len(values) > 0 {
			into[flag] = TaskSetting{Flag: flag, Values: values, Place: r.originOf(v)}
		}
	}
}

// readScalar reads one value and refuses what its kind does not take.
func (r *taskReader) readScalar(v value, kind taskKind) []string {
	text, ok := r.readText(v, v.Name())
	if !ok {
		return nil
	}
	if err := kind.checkText(text); err != nil {
		r.Refuse(v.At(), "%s: %w", v.Name(), err)
		return nil
	}
	return []string{text}
}

// checkText refuses a text that a kind does not take. The bounds of numbers are the
// flags' affair.
func (k taskKind) checkText(text string) error {
	var err error
	switch k {
	case taskDuration:
		_, err = sandbox.ParseDuration(text)
	case taskSize:
		_, err = sandbox.ParseSize(text)
	case taskCount:
		if n, ok := digitsOf(text); !ok || n < 1 {
			err = errors.New("it must be a whole number from 1")
		}
	case taskNumber:
		if n, bad := strconv.ParseFloat(text, 64); bad != nil || !(n > 0) || math.IsInf(n, 0) {
			err = errors.New("it must be a number above 0")
		}
	case taskSwitch:
		if text != "true" && text != "false" {
			err = fmt.Errorf("it must be true or false, not %q", text)
		}
	case taskText, taskWords, taskEnv, taskLabels:
	}
	return err
}

// wordOrWords reads a word or a list of words. A comma would make two of one.
func (r *taskReader) wordOrWords(v value) []string {
	list := r.oneOrMore(v)
	if v.Node.Kind == yaml.SequenceNode && len(v.Node.Content) == 0 {
		r.Refuse(v.At(), "%s is empty: leave it out, or name what it is to be", v.Name())
	}
	for _, w := range list {
		if strings.ContainsAny(w.text, `,"`) {
			r.Refuse(v.At(), "%s: write a list, like [one, two], without commas and quotes in a word", v.Name())
			return nil
		}
	}
	return wordTexts(list)
}

// readVariables reads a mapping of names to values, where a name without one has the
// caller's, or a list of NAME and NAME=VALUE. No mistake shows a value.
func (r *taskReader) readVariables(v value) []string {
	var values []string
	switch v.Node.Kind {
	case yaml.MappingNode:
		for _, one := range r.Pairs(v, v.Name()) {
			switch {
			case yamltext.IsEmpty(one.Node):
				values = append(values, one.Name())
			case one.Node.Kind != yaml.ScalarNode:
				r.Refuse(one.At(), "env %s must have a single text", yamltext.PrintableKey(one.Name()))
			case strings.ContainsRune(one.Node.Value, 0):
				r.Refuse(one.At(), "env %s holds a NUL byte", yamltext.PrintableKey(one.Name()))
			default:
				values = append(values, one.Name()+"="+one.Node.Value)
			}
		}
	case yaml.SequenceNode:
		for _, item := range v.Node.Content {
			if item.Kind != yaml.ScalarNode || yamltext.IsEmpty(item) {
				r.Refuse(yamltext.PlaceOf(item), "env must be a list of names, or of NAME=VALUE")
				continue
			}
			values = append(values, item.Value)
		}
	default:
		r.Refuse(v.At(), "env must be a mapping of names to values, or a list of names")
	}
	return values
}

// readMapped reads a mapping of words to words, as K=V.
func (r *taskReader) readMapped(v value) []string {
	var values []string
	for _, one := range r.Pairs(v, v.Name()) {
		if text, ok := r.readText(one, v.Name()+" "+yamltext.PrintableKey(one.Name())); ok {
			values = append(values, one.Name()+"="+text)
		}
	}
	return values
}

func (r *taskReader) readName(v value) string {
	text, ok := r.readText(v, v.Name())
	if ok && (len(text) > maxKey || strings.ContainsFunc(text, isControl)) {
		r.Refuse(v.At(), "%s must have at most %d bytes, all of them visible", v.Name(), maxKey)
		return ""
	}
	return text
}

func isControl(c rune) bool { return !unicode.IsPrint(c) }

// readTaskKey reads a key, which no other task of the file has.
func (r *taskReader) readTaskKey(v value) string {
	key := r.readName(v)
	if line, twice := r.keys[key]; twice && key != "" {
		r.Refuse(v.At(), "the key %s belongs to the task in line %d already", yamltext.QuoteKey(key), line)
	}
	r.keys[key] = v.At().Line
	return key
}

// readCommand reads the words of a program; any text but a NUL byte may be in one.
func (r *taskReader) readCommand(v value) []string {
	if v.Node.Kind != yaml.SequenceNode || len(v.Node.Content) == 0 {
		r.Refuse(v.At(), "command must be a list, like [make, test]; a line for the shell is shell: LINE")
		return nil
	}
	var words []string
	for _, item := range v.Node.Content {
		if item.Kind != yaml.ScalarNode || yamltext.IsEmpty(item) || strings.ContainsRune(item.Value, 0) {
			r.Refuse(yamltext.PlaceOf(item), "command must be a list of words")
			return nil
		}
		words = append(words, item.Value)
	}
	if words[0] == "" {
		r.Refuse(v.At(), "command names no program")
	}
	return words
}

func (r *taskReader) readShell(v value) []string {
	if v.Node.Kind != yaml.ScalarNode || strings.TrimSpace(v.Node.Value) == "" || strings.ContainsRune(v.Node.Value, 0) {
		r.Refuse(v.At(), "shell must be a text for sh -c; a list of words is command: [WORD, ...]")
		return nil
	}
	return []string{"sh", "-c", v.Node.Value}
}
