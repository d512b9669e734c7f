package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/yamltext"
)

// maxMistakes bounds what one run reports: a file of another kind has a mistake
// in every line.
const maxMistakes = 100

// position is a place in a file.
type position = yamltext.Place

// placedError is one mistake at a place of a file.
type placedError struct {
	path string
	at   position
	err  error
}

func (e *placedError) Error() string {
	return fmt.Sprintf("%s: %v", e.position(), e.err)
}

func (e *placedError) position() string {
	return fmt.Sprintf("%s:%d:%d", e.path, e.at.Line, e.at.Column)
}

func (e *placedError) Unwrap() error { return e.err }

func mistakeAt(path string, at position, format string, args ...any) error {
	return fault.Usage("%w", &placedError{path, at, fmt.Errorf(format, args...)}).WithHint(hintFile)
}

// joinMistakes gives all mistakes as one error, nil for none: those of the file from its top,
// after those of flags and variables.
func joinMistakes(errs []error) error {
	place := func(err error) position {
		if e, ok := errors.AsType[*placedError](err); ok {
			return e.at
		}
		return position{}
	}
	errs = slices.Clone(errs)
	slices.SortStableFunc(errs, func(a, b error) int {
		return cmp.Or(cmp.Compare(place(a).Line, place(b).Line), cmp.Compare(place(a).Column, place(b).Column))
	})
	if more := len(errs) - maxMistakes; more > 0 {
		errs = append(errs[:maxMistakes:maxMistakes], fault.Usage("and %d more mistakes", more).WithHint(hintFile))
	}
	return errors.Join(errs...)
}

// suggestAllowed writes what may be meant by a wrong word and what is allowed:
// ` (did you mean "x"?; allowed: ...)`.
func suggestAllowed(word string, allowed []string) string {
	all := "allowed: " + joinWords(slices.Compact(slices.Sorted(slices.Values(allowed))))
	if len(allowed) == 0 {
		all = "nothing is allowed here"
	}
	if near := fault.Nearest(word, slices.Sorted(slices.Values(allowed))); near != "" {
		return ` (did you mean "` + near + `"?; ` + all + ")"
	}
	return " (" + all + ")"
}

func joinWords(words []string) string { return strings.Join(words, ", ") }
