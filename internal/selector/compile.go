package selector

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Options are the selectors as typed. A nil pointer is a flag that was not given. An empty
// text was given, and is refused, because an unset shell variable must never mean "no
// limit".
type Options struct {
	States      []string  // each one state or several with commas between
	Now         time.Time // what ages and moments are counted from
	OlderThan   *string   // see sandbox.ParseDuration
	YoungerThan *string
	Before      *string // see sandbox.ParseMoment
	After       *string
	Labels      []string // key=value, or key alone for "present"
	Name        *string  // a glob: * ? [a-z], over the whole name
	Task        *string
	AgentType   *string
	Owner       *string
	Template    *string
	ExitCode    *int
	Where       *string // see ParseWhere
	Stuck       bool
	All         bool // also ended sandboxes; naming one of their states, or an exit code, asks for them, too
	Limit       *int
	Sort        *string
}

// Compile parses all options and reports everything that is wrong with them, each as
// fault.KindUsage, joined in the order of Options.
func Compile(o Options) (Selector, error) {
	s := Selector{Stuck: o.Stuck, All: o.All}
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	var err error
	s.States, err = ParseStates(o.States)
	note(err)
	s.All = s.All || slices.ContainsFunc(s.States, sandbox.State.Ended)
	s.OlderThan, err = parseAge("--older-than", o.OlderThan, "--before", o.Now)
	note(err)
	s.YoungerThan, err = parseAge("--younger-than", o.YoungerThan, "--after", o.Now)
	note(err)
	s.Before, err = parseMoment("--before", o.Before, o.Now)
	note(err)
	s.After, err = parseMoment("--after", o.After, o.Now)
	note(err)
	s.Labels, err = ParseLabels(o.Labels)
	note(err)
	s.Name, err = parseWord("--name", o.Name)
	note(err)
	s.Task, err = parseWord("--task", o.Task)
	note(err)
	s.AgentType, err = parseWord("--agent-type", o.AgentType)
	note(err)
	s.Owner, err = parseWord("--owner", o.Owner)
	note(err)
	s.Template, err = parseWord("--template", o.Template)
	note(err)
	s.ExitCode = o.ExitCode
	s.All = s.All || s.ExitCode != nil
	if o.Where != nil {
		if s.Where, err = ParseWhere(*o.Where); err != nil {
			note(fault.Usage("--where: %w", err))
		}
	}
	if o.Limit != nil {
		s.Limit = *o.Limit
		note(parseLimit(s.Limit))
	}
	note(s.Check())
	if o.Sort != nil {
		s.Sort, err = ParseOrder(*o.Sort)
		note(err)
	}
	if err := errors.Join(errs...); err != nil {
		return Selector{}, err
	}
	return s, nil
}

// Check refuses values that no flag allows, each as fault.KindUsage, joined: the rules of
// the flags also hold for a selector from a file.
func (s Selector) Check() error {
	var errs []error
	for _, state := range s.States {
		if parsed, known := sandbox.ParseState(string(state)); !known || parsed != state {
			errs = append(errs, fault.Usage("--state: no state %q", string(state)).WithHint("%s", stateHint(string(state))))
		}
	}
	for _, d := range []struct {
		flag string
		is   time.Duration
	}{{"--older-than", s.OlderThan}, {"--younger-than", s.YoungerThan}} {
		if d.is < 0 {
			errs = append(errs, fault.Usage("%s: %s is negative", d.flag, d.is))
		}
	}
	errs = append(errs, checkAgeWindow(s.OlderThan, s.YoungerThan))
	if !s.Before.IsZero() && !s.After.IsZero() && !s.After.Before(s.Before) {
		errs = append(
			errs,
			fault.Usage(
				"nothing can be created after %s and before %s", s.After.Format(time.RFC3339), s.Before.Format(time.RFC3339),
			).WithHint("--after must be the earlier time"),
		)
	}
	for _, l := range s.Labels {
		errs = append(errs, checkLabelKey(l.Key, l.Key))
	}
	errs = append(errs, parseGlob(s.Name))
	if s.Limit < 0 {
		errs = append(errs, parseLimit(s.Limit))
	}
	return errors.Join(errs...)
}

func checkLabelKey(key, text string) error {
	if key == "" || strings.TrimSpace(key) != key {
		return fault.Usage("--label: %q has no usable key", text).WithHint("write key=value, or key for any value")
	}
	return nil
}

// ParseStates parses states, each text one or several with commas between, without
// repetitions. All invalid words are one joined error.
func ParseStates(texts []string) ([]sandbox.State, error) {
	var states []sandbox.State
	var errs []error
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			state, known := sandbox.ParseState(part)
			switch {
			case !known:
				errs = append(errs, fault.Usage("--state: no state %q", part).WithHint("%s", stateHint(part)))
			case !slices.Contains(states, state):
				states = append(states, state)
			}
		}
	}
	return states, errors.Join(errs...)
}

func stateNames() []string {
	var names []string
	for _, s := range sandbox.States() {
		names = append(names, string(s))
	}
	return names
}

// ParseLabels parses label filters. Values of one key are alternatives; a key alone asks
// for its presence and adds nothing beside a value. The result is sorted by key.
func ParseLabels(texts []string) ([]Label, error) {
	var labels []Label
	var errs []error
	for _, text := range texts {
		key, value, valued := strings.Cut(text, "=")
		if err := checkLabelKey(key, text); err != nil {
			errs = append(errs, err)
			continue
		}
		if before, after, colon := strings.Cut(key, ":"); colon && !valued { // such a key is rarer than this mistake
			errs = append(errs, fault.Usage("--label: %q has no =", text).WithHint("write %s=%s", before, after))
			continue
		}
		i := slices.IndexFunc(labels, func(l Label) bool { return l.Key == key })
		if i < 0 {
			i = len(labels)
			labels = append(labels, Label{Key: key})
		}
		if valued && !slices.Contains(labels[i].Values, value) {
			labels[i].Values = append(labels[i].Values, value)
		}
	}
	slices.SortFunc(labels, func(a, b Label) int { return cmp.Compare(a.Key, b.Key) })
	return labels, errors.Join(errs...)
}

// parseAge reads an age, which is a duration. A moment is refused: it would become an age when
// it is read, and select more the longer the run waits for its turn. momentFlag takes one.
func parseAge(flag string, text *string, momentFlag string, now time.Time) (time.Duration, error) {
	if text == nil {
		return 0, nil
	}
	age, err := sandbox.ParseDuration(*text)
	if err == nil {
		return age, nil
	}
	switch _, notMoment := sandbox.ParseMoment(*text, now); {
	case notMoment == nil:
		return 0, fault.Usage("%s: %q is a time, not an age", flag, *text).WithHint("write %s %s", momentFlag, *text)
	case strings.Contains(*text, ":"):
		err = notMoment
	case *text != "" && unicode.IsLetter(rune((*text)[0])):
		return 0, fault.Usage("%s: %q is not an age", flag, *text).
			WithHint("an age is a duration: %s 10m, 1.5h or 3d; a time goes to %s: yesterday, 12:00 or 2026-11-22", flag, momentFlag)
	}
	return 0, fault.Usage("%s: %w", flag, err)
}

func parseMoment(flag string, text *string, now time.Time) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	if *text == "" {
		return time.Time{}, emptyError(flag)
	}
	at, err := sandbox.ParseMoment(*text, now)
	if err != nil {
		return time.Time{}, fault.Usage("%s: %w", flag, err)
	}
	return at, nil
}

// checkAgeWindow refuses two ages with nothing between them.
func checkAgeWindow(older, younger time.Duration) error {
	if older == 0 || younger == 0 || younger > older {
		return nil
	}
	return fault.Usage("nothing can be older than %s and younger than %s", sandbox.FormatDuration(older), sandbox.FormatDuration(younger)).
		WithHint("--younger-than must be longer than --older-than")
}

func parseWord(flag string, text *string) (string, error) {
	if text == nil {
		return "", nil
	}
	if *text == "" {
		return "", emptyError(flag)
	}
	return *text, nil
}

func parseGlob(pattern string) error {
	if _, err := path.Match(withoutSlashes(pattern), ""); err != nil {
		return fault.Usage("--name: the pattern %q is malformed", pattern).
			WithHint("* any text, ? one character, [a-z] a class; a backslash quotes the next character")
	}
	return nil
}

func parseLimit(n int) error {
	if n >= 1 {
		return nil
	}
	return fault.Usage("--limit: %d is less than 1", n).WithHint("leave it out for no limit")
}

func emptyError(flag string) error {
	return fault.Usage("%s: the value is empty", flag).WithHint("is a shell variable unset?")
}

// stateHint is what a wrong state most likely meant.
func stateHint(word string) string {
	if strings.EqualFold(strings.TrimSpace(word), "stuck") {
		return "stuck is a judgement of a running one, not a state: --stuck selects by it"
	}
	return fault.Meant(word, stateNames())
}
