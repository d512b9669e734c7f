package fault

import (
	"slices"
	"strings"
)

// maxTypo is how many single-character edits still count as a slip.
const maxTypo = 2

// maxWordBytes bounds the comparison, whose cost grows with the square of the length.
const maxWordBytes = 64

// Nearest gives the choice that word most likely meant, or "" when none is
// near: at most two edits away, and at most one for each three characters of the word. A word of
// more than 64 bytes has none.
// Upper and lower case count as equal. Of equally near ones the first wins.
func Nearest(word string, choices []string) string {
	best, found := maxTypo+1, ""
	if len(word) > maxWordBytes {
		return ""
	}
	for _, c := range choices {
		d := editDistance(strings.ToLower(word), strings.ToLower(c))
		if d < best && 3*d <= len([]rune(word)) {
			best, found = d, c
		}
	}
	return found
}

// Meant writes the hint for a refused word: the near choice, if there is one,
// and all that is allowed.
func Meant(word string, choices []string) string {
	allowed := "allowed: " + strings.Join(choices, ", ")
	if near := Nearest(word, choices); near != "" {
		return "did you mean " + near + "? " + allowed
	}
	return allowed
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbouring
// characters that turn one word into the other.
func editDistance(from, to string) int {
	a, b := []rune(from), []rune(to)
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = slices.Min([]int{last[j] + cost, last[j+1] + 1, row[j] + 1})
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
