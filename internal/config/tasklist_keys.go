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
func (r *taskReader) settingReaders(into taskSettings) map[string]reader {
	readers := map[string]reader{}
	for name, k := range taskKeys() {
		readers[name] = r.settingReader(into, k.flag, k.kind)
	}
	return readers
}

func (r *taskReader) settingReader(into taskSettings, flag string, kind taskKind) reader {
	return func(p pair) {
		var values []string
		switch kind {
		case taskWords:
			values = r.oneOrMore(p)
		case taskEnv:
			values = r.readVariables(p)
		case taskLabels:
			values = r.readMapped(p)
		default:
			values = r.readScalar(p, kind)
		}
		if len(values) > 0 {
			into[flag] = TaskSetting{Flag: flag, Values: values, Place: r.originOf(p.value)}
		}
	}
}

// readScalar reads one value and refuses what its kind does not take.
func (r *taskReader) readScalar(p pair, kind taskKind) []string {
	text, ok := r.readText(p.value, p.key.Value)
	if !ok {
		return nil
	}
	if err := kind.checkText(text); err != nil {
		r.addMistake(p.value, "%s: %w", p.key.Value, err)
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

// oneOrMore reads a word or a list of words. A comma would make two of one.
func (r *taskReader) oneOrMore(p pair) []string {
	list := []word{}
	if p.value.Kind == yaml.ScalarNode {
		if text, ok := r.readText(p.value, p.key.Value); ok {
			list = append(list, word{text, placeOf(p.value)})
		}
	} else {
		list = r.readWords(p)
	}
	if len(list) == 0 && p.value.Kind == yaml.SequenceNode && len(p.value.Content) == 0 {
		r.addMistake(p.value, "%s is empty: leave it out, or name what it is to be", p.key.Value)
	}
	for _, w := range list {
		if strings.ContainsAny(w.text, `,"`) {
			r.addMistake(p.value, "%s: write a list, like [one, two], without commas and quotes in a word", p.key.Value)
			return nil
		}
	}
	return wordTexts(list)
}

// readVariables reads a mapping of names to values, where a name without one has the
// caller's, or a list of NAME and NAME=VALUE. No mistake shows a value.
func (r *taskReader) readVariables(p pair) []string {
	var values []string
	switch p.value.Kind {
	case yaml.MappingNode:
		for _, v := range r.readPairs(p.value, p.key.Value) {
			switch {
			case yamltext.IsEmpty(v.value):
				values = append(values, v.key.Value)
			case v.value.Kind != yaml.ScalarNode:
				r.addMistake(v.value, "env %s must have a single text", printableKey(v.key.Value))
			case strings.ContainsRune(v.value.Value, 0):
				r.addMistake(v.value, "env %s holds a NUL byte", printableKey(v.key.Value))
			default:
				values = append(values, v.key.Value+"="+v.value.Value)
			}
		}
	case yaml.SequenceNode:
		for _, item := range p.value.Content {
			if item.Kind != yaml.ScalarNode || yamltext.IsEmpty(item) {
				r.addMistake(item, "env must be a list of names, or of NAME=VALUE")
				continue
			}
			values = append(values, item.Value)
		}
	default:
		r.addMistake(p.value, "env must be a mapping of names to values, or a list of names")
	}
	return values
}

// readMapped reads a mapping of words to words, as K=V.
func (r *taskReader) readMapped(p pair) []string {
	var values []string
	for _, v := range r.readPairs(p.value, p.key.Value) {
		if text, ok := r.readText(v.value, p.key.Value+" "+printableKey(v.key.Value)); ok {
			values = append(values, v.key.Value+"="+text)
		}
	}
	return values
}

func (r *taskReader) readName(p pair) string {
	text, ok := r.readText(p.value, p.key.Value)
	if ok && (len(text) > maxKey || strings.ContainsFunc(text, isControl)) {
		r.addMistake(p.value, "%s must have at most %d bytes, all of them visible", p.key.Value, maxKey)
		return ""
	}
	return text
}

func isControl(c rune) bool { return !unicode.IsPrint(c) }

// readTaskKey reads a key, which no other task of the file has.
func (r *taskReader) readTaskKey(p pair) string {
	key := r.readName(p)
	if line, twice := r.keys[key]; twice && key != "" {
		r.addMistake(p.value, "the key %s belongs to the task in line %d already", quoteKey(key), line)
	}
	r.keys[key] = p.value.Line
	return key
}

// readCommand reads the words of a program; any text but a NUL byte may be in one.
func (r *taskReader) readCommand(p pair) []string {
	if p.value.Kind != yaml.SequenceNode || len(p.value.Content) == 0 {
		r.addMistake(p.value, "command must be a list, like [make, test]; a line for the shell is shell: LINE")
		return nil
	}
	var words []string
	for _, item := range p.value.Content {
		if item.Kind != yaml.ScalarNode || yamltext.IsEmpty(item) || strings.ContainsRune(item.Value, 0) {
			r.addMistake(item, "command must be a list of words")
			return nil
		}
		words = append(words, item.Value)
	}
	if words[0] == "" {
		r.addMistake(p.value, "command names no program")
	}
	return words
}

func (r *taskReader) readShell(p pair) []string {
	if p.value.Kind != yaml.ScalarNode || strings.TrimSpace(p.value.Value) == "" || strings.ContainsRune(p.value.Value, 0) {
		r.addMistake(p.value, "shell must be a text for sh -c; a list of words is command: [WORD, ...]")
		return nil
	}
	return []string{"sh", "-c", p.value.Value}
}
