package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// theirs is the official command line of E2B that sbx is held against.
const theirs = "@e2b/cli@2.19.0"

// incumbents measures sbx and E2B's own command line side by side, on the same
// pages of the same server; both must show every row.
func (s stage) incumbents(t *table, runs int) error {
	e2b, err := s.install(theirs, "e2b")
	if err != nil {
		return err
	}
	address, end, err := shelf()
	if err != nil {
		return err
	}
	defer end()
	if err := s.side(t, "--version", runs, seen{"\n", 1}, s.command(s.sbx, "version"), s.command(e2b, "--version")); err != nil {
		return err
	}
	for _, rows := range []int{500, mostRows} {
		list := s.command(e2b, "sandbox", "list", "-l", "0", "-f", "json")
		list.Env = append(list.Env, "E2B_API_KEY="+key, fmt.Sprintf("E2B_API_URL=%s/%d", address, rows))
		if err := s.side(t, fmt.Sprintf("list of %d as JSON", rows), runs, seen{`": "i000`, rows}, s.ls(address, rows, "json"), list); err != nil {
			return err
		}
	}
	return nil
}

// install gets a package with npm into the stage's folder and gives its program.
func (s stage) install(what, program string) (string, error) {
	for _, need := range []string{"npm", "node"} {
		if _, err := exec.LookPath(need); err != nil {
			return "", fmt.Errorf("%s is missing: %s cannot be installed: %w", need, what, err)
		}
	}
	dir := filepath.Join(s.dir, "npm")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if text, err := exec.Command("npm", "install", "--no-audit", "--no-fund", "--prefix", dir, what).CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install %s: %w: %s", what, err, strings.TrimSpace(string(text)))
	}
	return filepath.Join(dir, "node_modules", ".bin", program), nil
}

// seen is what an output must have, and how often.
type seen struct {
	mark  string
	times int
}

// side runs both in turn.
func (s stage) side(t *table, what string, runs int, all seen, ours, their *exec.Cmd) error {
	var our, other figures
	for range runs {
		a, err := expect(again(ours), all.mark, all.times)
		if err != nil {
			return err
		}
		b, err := expect(again(their), all.mark, all.times)
		if err != nil {
			return err
		}
		our.add(a)
		other.add(b)
	}
	for _, f := range []struct {
		what, unit string
		our, other []float64
	}{
		{"wall", "ms", our.wall, other.wall},
		{"peak memory", "MB", our.peak, other.peak},
	} {
		t.add(what+": "+f.what+", sbx", "", f.unit, f.our...)
		t.add(what+": "+f.what+", "+theirs, "", f.unit, f.other...)
		t.add(what+": "+f.what+", theirs against ours", "", "times", ratios(f.other, f.our)...)
	}
	return nil
}

// again makes a command of one that may have run.
func again(cmd *exec.Cmd) *exec.Cmd {
	next := exec.Command(cmd.Path, cmd.Args[1:]...)
	next.Env = cmd.Env
	return next
}
