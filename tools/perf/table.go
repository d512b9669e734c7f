package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// row is one figure, measured several times.
type row struct {
	what   string
	budget string // as issue 2 words it; "" = shown for comparison
	unit   string
	values []float64
}

// table is the result of one measurement; it names no winner.
type table struct{ rows []row }

func (t *table) add(what, budget, unit string, values ...float64) {
	t.rows = append(t.rows, row{what: what, budget: budget, unit: unit, values: values})
}

// named are the values of a figure; nil = it is not in the table.
func (t *table) named(what string) []float64 {
	for _, r := range t.rows {
		if r.what == what {
			return r.values
		}
	}
	return nil
}

// print writes Markdown.
func (t *table) print(out io.Writer) {
	fmt.Fprintln(out, "| figure | budget | min | median | max | unit | runs |")
	fmt.Fprintln(out, "|---|---|---:|---:|---:|---|---:|")
	for _, r := range t.rows {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %d |\n", r.what, cmp.Or(r.budget, "-"),
			figure(slices.Min(r.values)), figure(median(r.values)), figure(slices.Max(r.values)), r.unit, len(r.values))
	}
}

// figure shows three digits, and whole numbers as such.
func figure(v float64) string {
	switch {
	case v == float64(int64(v)) || v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// median is the middle of the values, the upper one of two; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// ratios divides pairwise, so that a slow moment of the machine weighs on both.
func ratios(over, under []float64) []float64 {
	var out []float64
	for i := range min(len(over), len(under)) {
		if under[i] > 0 {
			out = append(out, over[i]/under[i])
		}
	}
	return out
}
