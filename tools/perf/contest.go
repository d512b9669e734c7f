package main

import (
	"fmt"
	"io"
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

// printContest writes Markdown.
func printContest(out io.Writer, all []entrant, results []result) {
	fmt.Fprintln(out, "| program | wall, ms | CPU, ms | peak, MB | requests | in flight | left at the end |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|")
	for i, e := range all {
		r := results[i]
		fmt.Fprintf(out, "| %s | %.0f | %.0f | %.1f | %.0f | %.0f | %.0f |\n", e.name,
			median(r.wall), median(r.cpu), median(r.peak), median(r.requests), median(r.most), median(r.left))
	}
}

func epoch() time.Time { return time.Unix(0, 0) }
