package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// guard is a figure with its target. One with a limit is a count of requests or an amount of memory,
// which no other process changes: above it the run fails. Times are only reported.
type guard struct {
	what, target, unit string
	limit              float64 // 0 = reported only
	values             []float64
}

func (g guard) exceeded() bool { return g.limit > 0 && median(g.values) > g.limit }

func (g guard) verdict() string {
	switch {
	case g.exceeded():
		return "RED: more than " + figure(g.limit)
	case g.limit > 0:
		return "at most " + figure(g.limit)
	}
	return "reported"
}

// The limits lie above what is measured on two cores, by a fifth for memory, where the collector of a busy machine
// comes late, and by a tenth for requests that depend on how long an end takes.
const (
	lsMemory       = 48  // MB; measured: 39 to 42
	tableMemory    = 60  // MB; measured: 50
	lookMemory     = 140 // MB; measured: 70 to 117
	crowdedMemory  = 165 // MB; measured: 109 to 138
	endingRequests = 480 // of 100 verified endings; measured: 434 to 439
	endingMemory   = 50  // MB; measured: 42
)

// budgets measures one of each kind: a start, a listing, looks at dead sandboxes, endings.
func (s stage) budgets(runs int, out io.Writer) error {
	before := load()
	var all []guard
	for _, measure := range []func(int) ([]guard, error){s.startBudget, s.listBudgets, s.lookBudgets, s.endBudgets} {
		some, err := measure(runs)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	machine(out, before, "")
	return printGuards(out, all)
}

// printGuards writes Markdown; the error names the figures above their limits.
func printGuards(out io.Writer, all []guard) error {
	fmt.Fprintln(out, "| figure | target | min | median | unit | limit |")
	fmt.Fprintln(out, "|---|---|---:|---:|---|---|")
	var over []string
	for _, g := range all {
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", g.what, cmp.Or(g.target, "-"), figure(slices.Min(g.values)), figure(median(g.values)), g.unit, g.verdict())
		if g.exceeded() {
			over = append(over, fmt.Sprintf("%s: %s %s instead of at most %s", g.what, figure(median(g.values)), g.unit, figure(g.limit)))
		}
	}
	if len(over) > 0 {
		return errors.New(strings.Join(over, "; "))
	}
	return nil
}

func (s stage) startBudget(runs int) ([]guard, error) {
	var t table
	err := s.starts(&t, 4*runs)
	return []guard{{what: "`sbx version`, whole process", target: "10", unit: "ms", values: t.named("`sbx version`, whole process")}}, err
}

// listBudgets are those of `ls` of 10,000 rows, in pairs with the loop.
func (s stage) listBudgets(runs int) ([]guard, error) {
	address, end, err := shelf()
	if err != nil {
		return nil, err
	}
	defer end()
	var t table
	if err := s.crowd(&t, address, runs); err != nil {
		return nil, err
	}
	var all []guard
	for _, format := range listFormats() {
		name, ratio, memory := "`sbx ls` of them as "+format, "1.4", float64(lsMemory)
		switch format {
		case "csv":
			ratio = "1.5"
		case "table":
			ratio, memory = "", tableMemory
		}
		all = append(all,
			guard{what: "`ls` of 10,000 as " + format + ": processor time, compared with the loop", target: ratio, unit: "times", values: t.named(name + ": processor time, against the loop")},
			guard{what: "peak memory", target: "45 MiB", unit: "MB", limit: memory, values: t.named(name + ": peak memory")},
			guard{what: "first row after", target: "10", unit: "ms", values: t.named(name + ": first output after")})
	}
	return all, nil
}

// lookBudgets are those of looks at 1,000 sandboxes of which 300 are dead.
func (s stage) lookBudgets(runs int) ([]guard, error) {
	address, end, err := serving(worldsWord)
	if err != nil {
		return nil, err
	}
	defer end()
	var all []guard
	for _, l := range deadLooks() {
		some, err := s.lookBudget(address, l, runs)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for _, l := range crowdedLooks() {
		some, err := s.crowdedBudget(address, l)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// crowdedLooks are looks at 10,000 sandboxes that one request decides about, or two.
func crowdedLooks() []look {
	plan := []string{"cleanup", "--older-than", "10m", "-o", "json"}
	return []look{
		{name: "`cleanup --older-than`, 10,000 at work", kind: "e2b-work", args: plan, rows: lookRows, live: 0.04},
		{name: "`cleanup --older-than`, 10,000 busy with new output", kind: "e2b-busy", args: plan, rows: lookRows, live: 1.1},
	}
}

// crowdedBudget measures one look once: its requests are always as many.
func (s stage) crowdedBudget(server string, l look) ([]guard, error) {
	got, t, err := s.lookOnce(server, l, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	_, each := t.perRow("", l.rows)
	return []guard{
		{what: l.name + ": wall", unit: "s", values: []float64{got.wall / 1000}},
		{what: "requests for each", target: "1.1", unit: "requests", limit: l.live, values: []float64{each}},
		{what: "peak memory", target: "120 MiB", unit: "MB", limit: crowdedMemory, values: []float64{got.peak}},
	}, nil
}

func (s stage) lookBudget(server string, l look, runs int) ([]guard, error) {
	var ratio, first, live, dead, memory []float64
	for range runs {
		got, t, err := s.lookOnce(server, l, callTakes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		_, ofLive := t.perRow("", deadRows-deadOnes)
		_, ofDead := t.perRow(deadSuffix, deadOnes)
		ratio, first, memory = append(ratio, got.wall/t.ideal(deadOnes)), append(first, t.FirstEnd/1000), append(memory, got.peak)
		live, dead = append(live, ofLive), append(dead, ofDead)
	}
	if median(first) > 0 { // it ends what it finds, which needs requests of its own
		return []guard{{what: l.name + ": first DELETE after", target: "30", unit: "s", values: first}}, nil
	}
	return []guard{
		{what: l.name + ": wall, compared with the ideal", target: "1.3", unit: "times", values: ratio},
		{what: "requests for a live one", target: "3", unit: "requests", limit: l.live, values: live},
		{what: "requests for a dead one", target: "1.2", unit: "requests", limit: l.dead, values: dead},
		{what: "peak memory", unit: "MB", limit: lookMemory, values: memory},
	}, nil
}

// endBudgets are those of 100 verified endings.
func (s stage) endBudgets(runs int) ([]guard, error) {
	address, end, err := serving(worldsWord)
	if err != nil {
		return nil, err
	}
	defer end()
	var r result
	for range runs {
		if err := s.enter(address, ours()[0], &r); err != nil {
			return nil, err
		}
	}
	return []guard{
		{what: "100 verified endings: wall", target: "650", unit: "ms", values: r.wall},
		{what: "requests", unit: "requests", limit: endingRequests, values: r.requests},
		{what: "peak memory", unit: "MB", limit: endingMemory, values: r.peak},
	}, nil
}
