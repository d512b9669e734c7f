package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// key has the form of E2B's keys; the page server takes any.
const key = "e2b_0123456789abcdef0123456789abcdef01234567"

// crowded is how many rows the remote listing has: a hundred pages.
const crowded = mostRows

// pipe is the format without -o: tab-separated rows, since no stdout here is a terminal.
const pipe = "pipe"

// ls prepares a listing of the page server's rows.
func (s stage) ls(address string, rows int, format string) *exec.Cmd {
	args := []string{"ls", "--provider", "e2b"}
	if format != pipe {
		args = append(args, "-o", format)
	}
	cmd := s.command(s.sbx, args...)
	cmd.Env = append(cmd.Env, "E2B_API_KEY="+key, fmt.Sprintf("E2B_API_URL=%s/%d", address, rows))
	return cmd
}

// remote times listings over the network: many pages of one provider, and five
// providers of which one hangs.
func (s stage) remote(t *table, runs int) error {
	address, end, err := shelf()
	if err != nil {
		return err
	}
	defer end()
	if err := s.crowd(t, address, runs); err != nil {
		return err
	}
	return s.hung(t, address, min(runs, 5)) // each takes as long as the hung one's patience
}

// figures are those of several runs of one program.
type figures struct{ wall, cpu, peak, first []float64 }

func (f *figures) add(s spent) {
	f.wall, f.cpu = append(f.wall, s.wall), append(f.cpu, s.cpu)
	f.peak, f.first = append(f.peak, s.peak), append(f.first, s.first)
}

// listFormats are the formats in which `ls` is measured; a table is laid out as a whole.
func listFormats() []string { return []string{pipe, "ndjson", "json", "csv", "table"} }

// crowd lists 10,000 rows with sbx and with the bare loop, in turn, so that a
// slow moment of the machine weighs on both.
func (s stage) crowd(t *table, address string, runs int) error {
	var loop figures
	formats := listFormats()
	took := map[string]*figures{}
	for range runs {
		bare, err := expect(s.command(s.loop, fmt.Sprintf("%s/%d", address, crowded), key), "\n", 1)
		if err != nil {
			return err
		}
		loop.add(bare)
		for _, format := range formats {
			got, err := expect(s.ls(address, crowded, format), "e2b/i", crowded)
			if err != nil {
				return err
			}
			if took[format] == nil {
				took[format] = &figures{}
			}
			took[format].add(got)
		}
	}
	t.add("a bare Go loop over 10,000 rows of 100 a page: wall", "", "ms", loop.wall...)
	t.add("the loop: processor time", "", "ms", loop.cpu...)
	for _, format := range formats {
		name, f := "`sbx ls` of them as "+format, took[format]
		t.add(name+": wall", "", "ms", f.wall...)
		t.add(name+": wall, against the loop", "1.05", "times", ratios(f.wall, loop.wall)...)
		t.add(name+": processor time", "", "ms", f.cpu...)
		t.add(name+": processor time, against the loop", "", "times", ratios(f.cpu, loop.cpu)...)
		t.add(name+": peak memory", "40", "MB", f.peak...)
		t.add(name+": first output after", "", "ms", f.first...)
	}
	return nil
}

// expect runs a program that must print a mark so many times and exit with 0.
func expect(cmd *exec.Cmd, mark string, times int) (spent, error) {
	got, err := spend(cmd, mark)
	if err == nil && (got.exit != 0 || got.marks != times) {
		err = fmt.Errorf("exit %d, %d rows: %s", got.exit, got.marks, strings.TrimSpace(got.errs))
	}
	if err != nil {
		return got, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return got, nil
}

// patience is how long the hung provider may keep the command (provider_timeout).
const patience = "2s"

// hung lists five providers of which one takes requests and never answers.
func (s stage) hung(t *table, address string, runs int) error {
	var b strings.Builder
	var keys []string
	fmt.Fprintf(&b, "limits: {provider_timeout: %s}\nproviders:\n", patience)
	for i := range 5 {
		how := "500"
		if i == 2 {
			how = hangs
		}
		fmt.Fprintf(&b, "  p%d: {type: e2b, token_env: KEY_%d, url: %s/%s}\n", i, i, address, how)
		keys = append(keys, fmt.Sprintf("KEY_%d=%s%d", i, key, i)) // one account each
	}
	file := filepath.Join(s.dir, "five.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return err
	}
	var first, last, wall []float64
	for range runs {
		cmd := s.command(s.sbx, "ls", "--config", file, "-o", "name")
		cmd.Env = append(cmd.Env, keys...)
		got, err := spend(cmd, "\n")
		if err != nil {
			return err
		}
		if got.exit != 3 || got.marks != 4*500 {
			return fmt.Errorf("a hung provider: exit %d, %d rows: %s", got.exit, got.marks, got.errs)
		}
		first, last, wall = append(first, got.first), append(last, got.last), append(wall, got.wall)
	}
	t.add("five providers of 500, one hangs: first row after", "", "ms", first...)
	t.add("all rows of the healthy four after", "", "ms", last...)
	t.add("the whole, with a provider_timeout of "+patience+" (exit 3)", "", "ms", wall...)
	return nil
}
