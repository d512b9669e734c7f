package config

import (
	"slices"
	"strings"
)

// closest gives the candidate that a misspelt word most likely meant, or "".
// Case does not count; a third of the word may differ.
func closest(word string, candidates []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := distance(strings.ToLower(word), c); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbours
// between two words.
func distance(a, b string) int {
	before, previous, row := []int{}, make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous, row = previous, row, make([]int, len(b)+1)
	}
	return previous[len(b)]
}

// meant writes what may be meant by a wrong word and what is allowed:
// ` (did you mean "x"?; allowed: ...)`.
func meant(word string, allowed []string) string {
	all := "allowed: " + listed(slices.Compact(slices.Sorted(slices.Values(allowed))))
	if len(allowed) == 0 {
		all = "nothing is allowed here"
	}
	if near := closest(word, allowed); near != "" {
		return ` (did you mean "` + near + `"?; ` + all + ")"
	}
	return " (" + all + ")"
}

func listed(words []string) string { return strings.Join(words, ", ") }

// shown gives the part of a misplaced key that may be printed: up to the first
// character that no key has. In `{token:s3cret}` the whole text is one key, and
// what follows the colon is a secret.
func shown(key string) string {
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
