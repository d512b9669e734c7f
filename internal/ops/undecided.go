package ops

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxReasons bounds the reasons that are said for what a selector leaves unknown.
const maxReasons = 4

// UnknownMatchLines say how many sandboxes are not selected because a selector is unknown for them,
// by reason: the most frequent first.
func UnknownMatchLines(reasons map[string]int) []string {
	var lines []string
	for i, reason := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return cmp.Or(reasons[b]-reasons[a], strings.Compare(a, b)) }) {
		if i == maxReasons {
			return append(lines, fmt.Sprintf("and more, for %d other reasons", len(reasons)-i))
		}
		lines = append(lines, fmt.Sprintf("%d not selected: %s", reasons[reason], reason))
	}
	return lines
}
