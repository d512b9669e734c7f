package views

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// StuckSummary answers the first question of an incident, how many are stuck, where and why:
// "26 stuck: e2b 17 (10 busy loop, 7 no answer), novita 6 (memory leak); 10 not judged: ...". Look
// is the command that queries what was not queried. "" = the rows show everything.
func StuckSummary(c look.Census, program, look string) string {
	stuck, and := fmt.Sprintf("%d stuck", c.Stuck), ", "
	if c.Stuck > 1 {
		stuck, and = stuck+": "+causeShares(c.Causes), "; "
	}
	switch {
	case c.Unjudged == 0 && c.Stuck < 2:
		return ""
	case c.Unjudged == 0:
		return stuck
	case c.Unlooked > 0:
		return fmt.Sprintf("%s%s%d not judged: `%s %s` queries them", stuck, and, c.Unjudged, program, look)
	}
	return fmt.Sprintf(
		"%s%s%d not judged, since no source shows whether they are active: `%s ls --where 'stuck == nil'` lists them", stuck, and, c.Unjudged, program,
	)
}

// causeShares counts by profile and cause, the most first: "e2b 17 (10 busy loop, 7 no answer),
// novita 6 (memory leak)".
func causeShares(causes map[string]map[sandbox.Cause]int) string {
	totals := map[string]int{}
	parts := map[string]string{}
	for profile, counted := range causes {
		labels := map[string]int{}
		for cause, n := range counted {
			totals[profile] += n
			labels[cause.Label()] += n
		}
		delete(labels, "") // a plan by age has no causes
		words := sandbox.FormatCounts(labels)
		if all := slices.Collect(maps.Keys(labels)); len(all) == 1 && labels[all[0]] == totals[profile] {
			words = all[0]
		}
		parts[profile] = ops.WithDetail(fmt.Sprintf("%s %d", profile, totals[profile]), words)
	}
	var list []string
	for _, profile := range sandbox.SortCounts(totals) {
		list = append(list, parts[profile])
	}
	return strings.Join(list, ", ")
}

// causeCounts are counts of causes as data, the most frequent first.
func causeCounts(causes map[sandbox.Cause]int) output.Ordered[int] {
	fields := output.Ordered[int]{}
	for _, cause := range sandbox.SortCounts(causes) {
		fields = append(fields, output.Field{Key: string(cause), Value: causes[cause]})
	}
	return fields
}
