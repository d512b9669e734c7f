// Command perf measures the product against the budgets of issues 2 and 3 and
// prints a table: start, create, kill, listing, memory, idle followers, size; then
// listings over loopback, with many pages and with a provider that hangs. Anybody
// can rerun it on Linux; it needs Go, a shell and the module cache, no network and
// no rights. The part "cleanup" measures bulk endings, and beside them those of
// kubectl and docker where they are on PATH, each on a fake of its API; the part
// "dashboard" the live screen in a pseudo-terminal. The part "incumbents" alone needs
// more: it installs E2B's command line with npm and measures it beside the product.
//
// It builds the product as a release does and measures whole processes from
// outside; calls of the local provider are timed by a probe that links all that
// the product links. It gives figures and no verdict, since a busy machine is not a
// slow program; the part "budgets" alone fails, for requests and memory.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// serveWord as the only argument makes this program the page server.
const serveWord = "serve-pages"

func main() {
	if err := begin(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "perf: error:", err)
		os.Exit(1)
	}
}

// begin serves or measures.
func begin(args []string) error {
	switch {
	case slices.Equal(args, []string{serveWord}):
		return serve()
	case slices.Equal(args, []string{worldsWord}):
		return serveWorlds()
	}
	return run(args, os.Stdout)
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("perf", flag.ContinueOnError)
	root := flags.String("C", "../..", "folder of the product's go.mod")
	runs := flags.Int("runs", 40, "how often each figure is taken")
	watched := flags.Duration("watched", 10*time.Second, "how long idle processes are watched")
	part := flags.String("part", "all", "what is measured: local, remote, all of both, cleanup, look (at 10,000 sandboxes), dead (1,000 sandboxes, 300 of them dead), dashboard (of as many), tasks (beside GNU parallel), budgets (one of each kind, red for requests and memory), or incumbents (installs one with npm)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return errors.New("the figures come from /proc: measure on Linux")
	}
	if !slices.Contains([]string{"all", "local", "remote", "cleanup", "look", "dead", "dashboard", "tasks", "budgets", "incumbents"}, *part) {
		return fmt.Errorf("-part: %q is none of local, remote, all, cleanup, look, dead, dashboard, tasks, budgets, incumbents", *part)
	}
	if *runs < 1 {
		return errors.New("-runs: at least 1")
	}
	dir, err := os.MkdirTemp("", "sbx-perf")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := build(*root, dir)
	if err != nil {
		return err
	}
	return measure(stage{programs, dir}, *part, *runs, *watched, out)
}

func measure(s stage, part string, runs int, watched time.Duration, out io.Writer) (failed error) {
	defer func() { failed = errors.Join(failed, s.end()) }()
	if part == "cleanup" {
		return s.cleanup(runs, out)
	}
	if part == "look" {
		return s.looks(runs, out)
	}
	if part == "dead" {
		return s.dead(runs, out)
	}
	if part == "budgets" {
		return s.budgets(runs, out)
	}
	var t table
	before, held := load(), ""
	var err error
	switch part {
	case "incumbents":
		err = s.incumbents(&t, runs)
	case "dashboard":
		err = s.dashboard(&t, runs)
	case "tasks":
		err = s.tasks(&t, runs)
	default:
		err = s.starts(&t, 2*runs)
	}
	if err == nil && (part == "all" || part == "local") {
		held, err = s.local(&t, runs, watched)
	}
	if err == nil && (part == "all" || part == "remote") {
		err = s.remote(&t, runs)
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(s.sbx)
	if err != nil {
		return err
	}
	t.add("binary, static and stripped", "45", "MB", float64(info.Size())/1e6)
	machine(out, before, held)
	t.print(out)
	return nil
}

// machine says where the figures come from.
func machine(out io.Writer, before, held string) {
	fmt.Fprintf(out, "%s, linux/%s, %d cores, load %s before and %s after%s.\n\n",
		runtime.Version(), runtime.GOARCH, runtime.NumCPU(), before, load(), held)
}

// load is how many wanted a processor in the last minute.
func load() string {
	raw, _ := os.ReadFile("/proc/loadavg") // without it the figures stand for themselves
	first, _, _ := strings.Cut(string(raw), " ")
	return first
}
