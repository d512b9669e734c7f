package config

import (
	"slices"
	"strings"

	"sbx/internal/fault"
)

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

// printableKey gives the part of a misplaced key that may be printed: up to the first
// character that no key has. In `{token:s3cret}` the whole text is one key, and
// what follows the colon is a secret.
func printableKey(key string) string {
	const longest = 40
	end := strings.IndexFunc(key, func(r rune) bool { return !keyRune(r) })
	if end < 0 {
		end = len(key)
	}
	return key[:min(end, longest)]
}

func keyRune(r rune) bool {
	return r == '_' || r == '-' || r == '.' || r == '/' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
