package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// match gives the sandboxes that a bare word may mean, by the best rule that
// fits any: exact id, exact name, id prefix.
func match(items []sandbox.Sandbox, word string) []sandbox.Sandbox {
	rules := []func(sandbox.Sandbox) bool{
		func(s sandbox.Sandbox) bool { return s.ID == word },
		func(s sandbox.Sandbox) bool { return s.Name == word },
		func(s sandbox.Sandbox) bool {
			return utf8.RuneCountInString(word) >= sandbox.MinPrefix && strings.HasPrefix(s.ID, word)
		},
	}
	for _, fits := range rules {
		if found := each(items, fits); len(found) > 0 {
			return found
		}
	}
	return nil
}

// each gives the fitting sandboxes, each once: a listing that moves while it is
// read may show one twice.
func each(items []sandbox.Sandbox, fits func(sandbox.Sandbox) bool) []sandbox.Sandbox {
	var found []sandbox.Sandbox
	seen := map[sandbox.Ref]bool{}
	for _, s := range items {
		if fits(s) && !seen[s.Ref()] {
			seen[s.Ref()] = true
			found = append(found, s)
		}
	}
	return found
}

// shownMatches is how many of several matches an error names.
const shownMatches = 5

// ambiguous is the refusal of a word with several meanings.
func ambiguous(word string, matches []sandbox.Sandbox) error {
	slices.SortFunc(matches, func(a, b sandbox.Sandbox) int { return cmp.Compare(a.Ref().String(), b.Ref().String()) })
	names := make([]string, 0, shownMatches)
	for _, s := range matches[:min(shownMatches, len(matches))] {
		names = append(names, fmt.Sprintf("%s (%s)", s.Ref(), s.State))
	}
	list := strings.Join(names, ", ")
	if more := len(matches) - shownMatches; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return fault.Usage("%q means %d sandboxes: %s", word, len(matches), list).
		WithHint("write one of them as profile/id")
}

// unsure is the answer when a provider that could not be listed might hold
// what was asked for.
func unsure(l Listing, word string) error {
	var silent []string
	for _, err := range l.Errors {
		var f *fault.Error
		if errors.As(err, &f) && !slices.Contains(silent, f.Provider) {
			silent = append(silent, f.Provider)
		}
	}
	return fault.New(unavailableOr(l.Err()), "%q may be a sandbox of %s, which could not be listed: %w",
		word, strings.Join(silent, ", "), errors.New(oneLine(l.Err()))).
		WithHint("write profile/%s, which asks that profile alone", word)
}

// oneLine writes joined errors on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
