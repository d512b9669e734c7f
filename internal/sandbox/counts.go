package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// FormatCounts writes what there is how often, the most frequent first: "10 busy loop, 5 memory
// leak". What is counted zero times is left out.
func FormatCounts[K ~string](counts map[K]int) string {
	var parts []string
	for _, word := range SortCounts(counts) {
		if n := counts[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return strings.Join(parts, ", ")
}

// SortCounts are the keys of counts, the most frequent first, equal ones by their name.
func SortCounts[K ~string](counts map[K]int) []K {
	return slices.SortedFunc(maps.Keys(counts), func(a, b K) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
}

// FormatFirst names the first texts, at most so many, and counts the others: "a, b and 3 more".
func FormatFirst(texts []string, most int) string {
	if more := len(texts) - most; more > 0 {
		return strings.Join(texts[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(texts, ", ")
}

// FormatCount is a number with its noun: "1 sandbox", "2 sandboxes".
func FormatCount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
