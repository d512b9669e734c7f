package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"al.essio.dev/pkg/shellescape"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sbx/internal/jsontext"
)

// tool is a verb of sbx as an assistant sees it.
type tool struct {
	name, about string
	verb        []string // the words before its arguments
	arguments   []argument
	act         string // the word of --allow that it needs; "" = it only reads
	plans       bool   // it shows the plan of what a person may do by the same command line
}

// argument is one value of a call.
type argument struct {
	name, about string
	kind        kind
	flag        string // "" = a word behind the verb
	required    bool
	most        int            // of a number: it is at most that, which is also its default where given is 0
	given       int            // of a number: its default
	form        *regexp.Regexp // of a text; nil = any that is no flag
}

type kind string

// The kinds of arguments, by their names in JSON Schema.
const (
	text    kind = "string"
	number  kind = "integer"
	flag    kind = "boolean"
	command kind = "array" // the words of a program, behind --
)

// fullTaskID is the id of one task, never the beginning of one: an act is about what was named.
var fullTaskID = regexp.MustCompile(`^t-[a-z0-9]{12}$`)

func allTools() []tool {
	ref := argument{name: "ref", about: "the sandbox: PROFILE/ID, an id, or a name", kind: text, required: true}
	provider := argument{name: "provider", about: "only this profile", kind: text, flag: "provider"}
	since := argument{name: "since", about: "how far back, like 2h", kind: text, flag: "since"}
	where := argument{name: "where", about: "a condition, like `age_seconds > 10m and state == \"running\"`", kind: text, flag: "where"}
	stuck := argument{name: "stuck", about: "only those that are stuck", kind: flag, flag: "stuck"}
	older := argument{name: "older_than", about: "only those created longer ago, like 10m", kind: text, flag: "older-than"}
	label := argument{name: "label", about: "only those with this label, KEY=VALUE", kind: text, flag: "label"}
	task := argument{name: "task", about: "the full id of one task, like t-k3v9x2mq7abc", kind: text, required: true, form: fullTaskID}
	limit := argument{name: "limit", about: "at most so many", kind: number, flag: "limit", given: 100, most: 1000}
	return []tool{
		{
			name: "list-sandboxes", about: "List sandboxes with state, age and verdict.", verb: []string{"ls"},
			arguments: []argument{
				provider, stuck, older, label, where, limit, {name: "look", about: "observe each one now, which takes longer", kind: flag, flag: "look"},
			},
		},
		{
			name: "inspect-sandbox", about: "Show one sandbox: verdict, evidence, causes, timeline, next command.", verb: []string{"inspect"},
			arguments: []argument{ref},
		},
		{
			name: "diagnose", about: "Judge all sandboxes of all providers by the runbook: what is wrong, and why.", verb: []string{"diagnose"},
			arguments: []argument{provider},
		},
		{
			name: "read-logs", about: "Read the last lines of a sandbox.", verb: []string{"logs"},
			arguments: []argument{ref, since, {name: "tail", about: "at most so many last lines", kind: number, flag: "tail", given: 100, most: 2000}},
		},
		{
			name: "read-events", about: "Show what the agent of a sandbox did: tools, files, messages, in order.", verb: []string{"events", "--no-file"},
			arguments: []argument{ref},
		},
		{name: "fleet-stats", about: "Count sandboxes by provider and state, with quotas and thresholds.", verb: []string{"stats"}, arguments: []argument{provider}},
		{name: "list-tasks", about: "List tasks with state, attempts and publication.", verb: []string{"tasks"}},
		{name: "show-task", about: "Show one task: each attempt, the cause of its end, the evidence.", verb: []string{"tasks", "show"}, arguments: []argument{task}},
		{name: "read-audit", about: "List what sbx has ended or changed: when, who, and the proof.", verb: []string{"audit"}, arguments: []argument{since}},
		{
			name: "plan-cleanup", about: "Show what a cleanup would end and what it would keep, and end nothing.", verb: []string{"cleanup"},
			arguments: []argument{provider, stuck, older, label, where}, plans: true,
		},
		{name: "check-setup", about: "Check configuration, credentials, reachability and records of sbx.", verb: []string{"doctor"}},
		{
			name: "stop-task", about: "Stop one task: block its publication, then end its sandboxes and verify that.", verb: []string{"stop"},
			arguments: []argument{task}, act: "stop",
		},
		{
			name: "continue-task", about: "Run another command in the kept sandbox of one task, and wait for its end.", verb: []string{"resume"},
			arguments: []argument{task, {name: "command", about: "the program and its words", kind: command, required: true}}, act: "resume",
		},
	}
}

// definition is what the assistant reads.
func (t tool) definition() *sdk.Tool {
	properties, required := map[string]any{}, []string{}
	for _, a := range t.arguments {
		properties[a.name] = a.schema()
		if a.required {
			required = append(required, a.name)
		}
	}
	return &sdk.Tool{
		Name: t.name, Description: t.about + " " + untrusted,
		InputSchema: map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false},
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.act == "", DestructiveHint: new(t.act == "stop"), IdempotentHint: t.act != "resume"},
	}
}

func (a argument) schema() map[string]any {
	s := map[string]any{"type": string(a.kind), "description": a.about}
	switch a.kind {
	case number:
		s["minimum"], s["maximum"], s["default"] = 1, a.most, a.given
	case command:
		s["items"], s["minItems"] = map[string]any{"type": "string"}, 1
	case text:
		if a.form != nil {
			s["pattern"] = a.form.String()
		}
	case flag:
	}
	return s
}

// decode reads the arguments of a call: an object, or nothing.
func (t tool) decode(raw json.RawMessage) (map[string]json.RawMessage, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return given, nil
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, fmt.Errorf("%s: the arguments are no object: %s", t.name, jsontext.Describe(err))
	}
	return given, nil
}

// commandLine is the line of a call. An argument that is unknown, of another type or not of its form is an error.
func (t tool) commandLine(raw json.RawMessage, s Server) ([]string, error) {
	given, err := t.decode(raw)
	if err != nil {
		return nil, err
	}
	args := append(slices.Clone(t.verb), forTools()...)
	if t.plans {
		args = append(args, planOnly)
	}
	profiles := s.Providers
	var words, program []string
	for _, a := range t.arguments {
		value, there := given[a.name]
		delete(given, a.name)
		if !there && a.required {
			return nil, fmt.Errorf("%s: %s is missing: %s", t.name, a.name, a.about)
		}
		got, err := a.readValue(value, there)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %s: %w", t.name, a.name, err)
		case a.kind == command:
			program = got
		case a.flag == "provider":
			if profiles, err = narrow(profiles, got); err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		case a.flag == "":
			words = append(words, got...)
		default:
			args = append(args, a.flagWords(got)...)
		}
		if a.form == fullTaskID && s.CheckTask != nil {
			if err := s.CheckTask(got[0]); err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	if len(given) > 0 {
		return nil, fmt.Errorf("%s has no argument %s", t.name, slices.Sorted(maps.Keys(given))[0])
	}
	for _, name := range profiles {
		args = append(args, "--provider="+name)
	}
	args = append(append(args, s.Globals...), words...)
	if len(program) > 0 {
		args = append(append(args, "--"), program...)
	}
	return args, nil
}

// narrow are the profiles of a call that names one of those that may be shown; none = it names none.
func narrow(shown, named []string) ([]string, error) {
	switch {
	case len(named) == 0:
		return shown, nil
	case len(shown) > 0 && !slices.Contains(shown, named[0]):
		return nil, fmt.Errorf("only %s may be shown", strings.Join(shown, ", "))
	}
	return named, nil
}

// planOnly keeps a verb from acting, also where the configuration lets it act without a terminal. A person types
// the line without it.
const planOnly = "--dry-run"

// forTools are the flags that only a tool needs.
func forTools() []string {
	return []string{"--output=json", "--quiet", "--timeout=" + callLimit.String()}
}

// flagWords are the values behind the flag of an argument.
func (a argument) flagWords(values []string) (words []string) {
	for _, v := range values {
		word := "--" + a.flag
		if a.kind != flag {
			word += "=" + v
		}
		words = append(words, word)
	}
	return words
}

// readValue gives the texts of a value: none where it is not given or false.
func (a argument) readValue(raw json.RawMessage, there bool) ([]string, error) {
	if !there || string(bytes.TrimSpace(raw)) == "null" {
		if a.kind == number {
			return []string{strconv.Itoa(a.given)}, nil
		}
		return nil, nil
	}
	switch a.kind {
	case number:
		var n int
		if err := json.Unmarshal(raw, &n); err != nil || n < 1 || n > a.most {
			return nil, fmt.Errorf("a whole number from 1 to %d is wanted", a.most)
		}
		return []string{strconv.Itoa(n)}, nil
	case flag:
		var on bool
		if err := json.Unmarshal(raw, &on); err != nil {
			return nil, errors.New("true or false is wanted")
		}
		if on {
			return []string{"true"}, nil
		}
		return nil, nil
	case command:
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 || list[0] == "" {
			return nil, errors.New("a list of words is wanted, with the program first")
		}
		return list, nil
	case text:
	}
	var word string
	switch err := json.Unmarshal(raw, &word); {
	case err != nil || word == "":
		return nil, errors.New("a text is wanted")
	case a.form != nil && !a.form.MatchString(word):
		return nil, fmt.Errorf("it has not the form %s: %s", a.form, a.about)
	case a.flag == "" && (strings.HasPrefix(word, "-") || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' })):
		return nil, fmt.Errorf("it is no reference: %s", a.about)
	}
	return []string{word}, nil
}

// typed is a command line as a person could type it, who sees the page instead of the document.
func typed(program string, args []string) string {
	return program + " " + shellescape.QuoteCommand(slices.DeleteFunc(
		slices.Clone(args), func(arg string) bool { return arg == planOnly || slices.Contains(forTools(), arg) },
	))
}
