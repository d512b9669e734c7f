package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// result is what several runs of one entrant took.
type result struct {
	figures

	requests, most, left []float64
}

func (r *result) add(s spent, t tally) {
	r.figures.add(s)
	r.requests, r.most, r.left = append(r.requests, float64(t.Requests)), append(r.most, float64(t.Most)), append(r.left, float64(t.Left))
}

// printContest writes Markdown. The ratio is that of a wall to the first entrant's,
// of neighbouring runs.
func printContest(out io.Writer, all []entrant, results []result) {
	fmt.Fprintln(out, "| program | wall, ms | p95 | min | CPU, ms | peak, MB | requests | in flight | still there when it ended | times the first | runs |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for i, e := range all {
		r := results[i]
		fmt.Fprintf(out, "| %s | %.0f | %.0f | %.0f | %.0f | %.1f | %.0f | %.0f | %.0f | %s | %d |\n", e.name,
			median(r.wall), percentile(r.wall, 95), slices.Min(r.wall), median(r.cpu), median(r.peak), median(r.requests), median(r.most), median(r.left),
			figure(median(ratios(r.wall, results[0].wall))), len(r.wall))
	}
}

// percentile is the smallest value that p percent of the values do not exceed.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}

func epoch() time.Time { return time.Unix(0, 0) }
