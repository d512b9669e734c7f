package main

import (
	"fmt"
	"io"
	"strings"
)

// deadRows are the sandboxes of the measurement with dead ones; every tenth is idle, and deadOnes are dead.
const (
	deadRows = 1000
	deadOnes = deadRows * 3 / 10
)

func deadLooks() []look {
	all := []look{
		{name: "`ls --look`", args: []string{"ls", "--look", "-o", "json"}},
		{name: "`stats --look`", args: []string{"stats", "--look", "-o", "json"}},
		{name: "`diagnose`", args: []string{"diagnose", "-o", "json"}, exit: 10},
		{name: "`cleanup --stuck`, the plan", args: []string{"cleanup", "--stuck", "-o", "json"}},
		// what is healthy shows in no stored figure: 9 and 7 requests were measured
		{name: "`cleanup --unhealthy`, the plan", args: []string{"cleanup", "--unhealthy", "-o", "json"}, live: 9.5, dead: 7.5},
		{name: "`cleanup --unhealthy --yes`", args: []string{"cleanup", "--unhealthy", "--yes", "-q", "--max-delete", "1000", "--max-fraction", "100%"}},
	}
	for i := range all {
		all[i].kind, all[i].rows = "e2b-dead", deadRows
		if all[i].live == 0 {
			all[i].live, all[i].dead = 0.8, 6.5 // measured: 0.7, 6
		}
	}
	return all
}

// dead measures looks at 1,000 sandboxes on a fake of E2B's API that answers after 20 ms. Of 300 the edge
// says, after 1.1 s, that nothing in them answers.
func (s stage) dead(runs int, out io.Writer) error {
	address, end, err := serving(worldsWord)
	if err != nil {
		return err
	}
	defer end()
	before := load()
	var lines strings.Builder
	for _, l := range deadLooks() {
		f, last, err := s.lookRuns(address, l, callTakes, runs)
		if err != nil {
			return err
		}
		first := "-"
		if last.FirstEnd > 0 {
			first = fmt.Sprintf("%.1f", last.FirstEnd/1000)
		}
		ideal := last.ideal(deadOnes)
		live, _ := last.perRow("", deadRows-deadOnes)
		dead, _ := last.perRow(deadSuffix, deadOnes)
		fmt.Fprintf(&lines, "| %s | %.1f | %.1f | %.2f | %s | %s | %d | %s | %.2f | %.0f |\n", l.name, median(f.wall)/1000, ideal/1000, median(f.wall)/ideal,
			live, dead, last.Most, first, median(f.cpu)/1000, median(f.peak))
	}
	machine(out, before, "")
	fmt.Fprintf(out, "| %d sandboxes, %d of them dead | wall, s | ideal, s | ratio | requests for each live one | for each dead one | in flight | first DELETE after, s | CPU, s | peak, MB |\n", deadRows, deadOnes)
	fmt.Fprintln(out, "|---|---:|---:|---:|---|---|---:|---:|---:|---:|")
	fmt.Fprint(out, lines.String())
	return nil
}
