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
}

func looks() []look {
	cleanup := []string{"cleanup", "--stuck", "-o", "json"}
	return []look{
		{"`cleanup --stuck`, all at work", "e2b-work", cleanup},
		{"`ls --stuck`, all at work", "e2b-work", []string{"ls", "--stuck"}},
		{"`top`, all at work", "e2b-work", []string{"top"}},
		{"`cleanup --stuck`, a tenth idle", "e2b-mixed", cleanup},
		{"`cleanup --stuck`, all at work, no bulk metrics", "e2b-old", cleanup},
		{"`cleanup --stuck`, all idle", "e2b-idle", cleanup},
	}
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
				return fmt.Errorf("%s: %w", l.name, err)
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

// lookOften runs one command and gives its row.
func (s stage) lookOften(server string, l look, takes time.Duration, runs int) (string, error) {
	var f figures
	var last tally
	for range runs {
		got, t, err := s.lookOnce(server, l, takes)
		if err != nil {
			return "", err
		}
		f.add(got)
		last = t
	}
	ideal := "-"
	if takes > 0 {
		ideal = fmt.Sprintf("%.2f", median(f.wall)/last.ideal())
	}
	return fmt.Sprintf("| %s | %s | %.2f | %.2f | %.0f | %d | %s | %d | %s |\n", l.name, takes, median(f.wall)/1000, median(f.cpu)/1000, median(f.peak),
		last.Requests, perRow(last.Kinds), last.Most, ideal), nil
}

// ideal is the least time, in milliseconds, for the requests at the time that each really took:
// the pages of a list follow each other, since each names the next; of the others lookInFlight
// are in flight at once.
func (t tally) ideal() float64 {
	lists, each := float64(t.Kinds["list"]), t.Took/float64(t.Requests)
	return lists*each + (float64(t.Requests)-lists)*each/lookInFlight
}

// perRow names the requests of each kind for one sandbox.
func perRow(kinds map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, fmt.Sprintf("%.2g %s", float64(kinds[kind])/lookRows, kind))
	}
	return strings.Join(parts, ", ")
}

func (s stage) lookOnce(server string, l look, takes time.Duration) (spent, tally, error) {
	var t tally
	at, err := ask(http.MethodPost, fmt.Sprintf("%s/%s/%d?takes=%s", server, l.kind, lookRows, takes))
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
	if err == nil && got.exit != 0 {
		err = fmt.Errorf("exit %d: %s", got.exit, strings.TrimSpace(got.errs))
	}
	return got, t, err
}

// onE2B prepares sbx on a world with E2B's API.
func (s stage) onE2B(at string, args ...string) (*exec.Cmd, error) {
	file := filepath.Join(s.dir, "look.yaml")
	text := fmt.Sprintf("providers:\n  prod: {type: e2b, token_env: KEY, url: http://%[1]s, sandbox_url: http://%[1]s}\n", at)
	cmd := s.command(s.sbx, append(args, "--provider", "prod", "--config", file)...)
	cmd.Env = append(cmd.Env, "KEY="+key)
	return cmd, os.WriteFile(file, []byte(text), 0o600)
}
