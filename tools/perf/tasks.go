package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errand is a command that many tasks run, and how many.
type errand struct {
	what, command string
	tasks         int
}

func errands() []errand {
	return []errand{
		{"100 tasks of `sleep 0.2`", "sleep 0.2", 100},
		{"100 tasks of `sleep 2`", "sleep 2", 100},
		{"20 tasks that count to 300,000", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", 20},
	}
}

// tasks measures `sbx run --file` beside `parallel`, 16 at once, in turn, each with a
// log of its jobs; sbx under a memory budget besides.
func (s stage) tasks(t *table, runs int) error {
	parallel, err := exec.LookPath("parallel")
	if err != nil {
		return fmt.Errorf("-part tasks needs GNU parallel: %w", err)
	}
	for i, e := range errands() {
		file := filepath.Join(s.dir, fmt.Sprintf("tasks%d.yaml", i))
		if err := os.WriteFile(file, []byte(e.file()), 0o600); err != nil {
			return err
		}
		var theirs, ours []float64
		for n := range runs {
			log := filepath.Join(s.dir, fmt.Sprintf("job%d-%d", i, n))
			them := exec.Command(parallel, "-j16", "--joblog", log+".theirs", e.command+" #{}")
			them.Env = append(os.Environ(), "SHELL=/bin/sh")
			them.Stdin = strings.NewReader(lines(e.tasks))
			us := exec.Command(s.sbx, "run", "--file", file, "--parallel", "16", "--memory-budget", "2G", "--joblog", log+".ours", "-q")
			us.Env = append(os.Environ(), "SBX_STATE_DIR="+filepath.Join(s.dir, fmt.Sprintf("batch%d-%d", i, n)))
			for _, c := range []struct {
				cmd  *exec.Cmd
				into *[]float64
			}{{them, &theirs}, {us, &ours}} {
				took, err := timed(c.cmd)
				if err != nil {
					return err
				}
				*c.into = append(*c.into, took)
			}
		}
		t.add("parallel -j16: "+e.what, "", "s", theirs...)
		t.add("sbx run --parallel 16: "+e.what, "", "s", ours...)
		t.add("ratio", "", "x", ratios(ours, theirs)...)
	}
	return nil
}

func (e errand) file() string {
	var b strings.Builder
	b.WriteString("defaults: {memory: 64M}\ntasks:\n")
	for i := range e.tasks {
		fmt.Fprintf(&b, "  - {name: n%d, shell: '%s'}\n", i, e.command)
	}
	return b.String()
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	return b.String()
}

// timed runs a program to its end, in seconds.
func timed(c *exec.Cmd) (float64, error) {
	c.Stdout = io.Discard
	var said strings.Builder
	c.Stderr = &said
	began := time.Now()
	if err := c.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", c.Path, err, said.String())
	}
	return time.Since(began).Seconds(), nil
}
