package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lookRows is how many running sandboxes a look has.
const lookRows = 10_000

// lookInFlight is how many requests about single sandboxes sbx has in flight to one provider.
const lookInFlight = 16

// look is one command of the measurement of looks.
type look struct {
	name string
	kind string // of world
	args []string
	rows int // sandboxes of the world
	exit int // the code that a look without a fault has

	live, dead float64 // requests for a live and for a dead sandbox, at most; 0 = no limit
}

func looks() []look {
	cleanup := []string{"cleanup", "--stuck", "-o", "json"}
	all := []look{
		{name: "`cleanup --stuck`, all at work", kind: "e2b-work", args: cleanup},
		{name: "`ls --stuck`, all at work", kind: "e2b-work", args: []string{"ls", "--stuck"}},
		{name: "`top`, all at work", kind: "e2b-work", args: []string{"top"}},
		{name: "`cleanup --stuck`, a tenth idle", kind: "e2b-mixed", args: cleanup},
		{name: "`cleanup --stuck`, all at work, no bulk metrics", kind: "e2b-old", args: cleanup},
		{name: "`cleanup --older-than`, all busy, with new output", kind: "e2b-busy", args: []string{"cleanup", "--older-than", "10m", "-o", "json"}},
		{name: "`cleanup --stuck`, all idle", kind: "e2b-idle", args: cleanup},
	}
	for i := range all {
		all[i].rows = lookRows
	}
	return all
}

// looks measures commands that look at every one of 10,000 sandboxes, on a fake of E2B's API
// that answers at once and after 20 ms, and prints one table.
func (s stage) looks(runs int, out io.Writer) error {
	address, end, err := serving(worldsWord)
	if err != nil {
		return err
	}
	defer end()
	before := load()
	var lines strings.Builder
	for _, l := range looks() {
		for _, takes := range []time.Duration{0, callTakes} {
			line, err := s.lookOften(address, l, takes, runs)
			if err != nil {
				return err
			}
			lines.WriteString(line)
		}
	}
	machine(out, before, "")
	fmt.Fprintf(out, "| %d sandboxes | a call takes | wall, s | CPU, s | peak, MB | requests | for each sandbox | in flight | against the ideal |\n", lookRows)
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---|---:|---:|")
	fmt.Fprint(out, lines.String())
	return nil
}

// lookRuns runs one command several times. The tally is that of the last run.
func (s stage) lookRuns(server string, l look, takes time.Duration, runs int) (f figures, last tally, err error) {
	for range runs {
		var got spent
		if got, last, err = s.lookOnce(server, l, takes); err != nil {
			return f, last, fmt.Errorf("%s: %w", l.name, err)
		}
		f.add(got)
	}
	return f, last, nil
}

// lookOften runs one command and gives its row.
func (s stage) lookOften(server string, l look, takes time.Duration, runs int) (string, error) {
	f, last, err := s.lookRuns(server, l, takes, runs)
	if err != nil {
		return "", err
	}
	ideal := "-"
	if takes > 0 {
		ideal = fmt.Sprintf("%.2f", median(f.wall)/last.ideal(0))
	}
	each, _ := last.perRow("", l.rows)
	return fmt.Sprintf("| %s | %s | %.2f | %.2f | %.0f | %d | %s | %d | %s |\n", l.name, takes, median(f.wall)/1000, median(f.cpu)/1000, median(f.peak),
		last.Requests, each, last.Most, ideal), nil
}

// ideal is the least time, in milliseconds, for the requests at the time that each really took:
// the pages of a list follow each other, since each names the next; of the others lookInFlight
// are in flight at once. Those into a dead sandbox follow each other with a pause, and the dead
// ones wait for nothing else.
func (t tally) ideal(dead int) float64 {
	var pages, others, chain float64
	for kind, c := range t.Kinds {
		switch kind {
		case "list":
			pages += c.Took
		case "host" + deadSuffix:
			each := float64(c.N) / float64(dead)
			chain = each*c.Took/float64(c.N) + max(0, each-1)*float64(provedAfter.Milliseconds())
		default:
			others += c.Took
		}
	}
	return pages + max(others/lookInFlight, chain)
}

// provedAfter is the pause before the second answer that proves a sandbox dead: envd may be restarting.
const provedAfter = 2 * time.Second

// perRow names and counts the requests of each kind for one sandbox, those with the suffix or those without.
func (t tally) perRow(suffix string, rows int) (text string, all float64) {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(t.Kinds)) {
		if what, dead := strings.CutSuffix(kind, deadSuffix); dead == (suffix != "") {
			n := float64(t.Kinds[kind].N) / float64(rows)
			all += n
			parts = append(parts, fmt.Sprintf("%.2g %s", n, what))
		}
	}
	return fmt.Sprintf("%.3g: %s", all, strings.Join(parts, ", ")), all
}

func (s stage) lookOnce(server string, l look, takes time.Duration) (spent, tally, error) {
	var t tally
	at, err := ask(http.MethodPost, fmt.Sprintf("%s/%s/%d?takes=%s", server, l.kind, l.rows, takes))
	if err != nil {
		return spent{}, t, err
	}
	cmd, err := s.onE2B(string(at), l.args...)
	if err != nil {
		return spent{}, t, err
	}
	got, err := spend(cmd, "\n")
	if err != nil {
		return got, t, err
	}
	raw, err := ask(http.MethodDelete, server+"/"+string(at))
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err == nil && got.exit != l.exit {
		err = fmt.Errorf("exit %d: %s", got.exit, strings.TrimSpace(got.errs))
	}
	return got, t, err
}

// onE2B prepares sbx on a world with E2B's API.
func (s stage) onE2B(at string, args ...string) (*exec.Cmd, error) {
	file := filepath.Join(s.dir, "look.yaml")
	text := fmt.Sprintf("providers:\n  prod: {type: e2b, owned: all, token_env: KEY, url: http://%[1]s, sandbox_url: http://%[1]s}\n", at)
	cmd := s.command(s.sbx, append(args, "--provider", "prod", "--config", file)...)
	cmd.Env = append(cmd.Env, "KEY="+key)
	return cmd, os.WriteFile(file, []byte(text), 0o600)
}
