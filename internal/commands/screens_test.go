package commands

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// screenFleet is a fleet of every kind of row: busy, at work, not judged, ended, and names that
// are hard to lay out.
func screenFleet() []fake.Seed {
	named := func(s fake.Seed, name, task string, labels map[string]string) fake.Seed {
		s.Sandbox.Name, s.Sandbox.TaskID, s.Sandbox.Labels = name, task, labels
		return s
	}
	ended := func(id string, state sandbox.State, exit sandbox.Exit) fake.Seed {
		s := running(id, 30*time.Minute)
		s.Sandbox.State, s.Sandbox.EndedAt, s.Sandbox.Exit = state, noon.Add(-5*time.Minute), &exit
		return s
	}
	return []fake.Seed{
		named(loop(), "", "T-4002", map[string]string{"team": "search", "sbx/owner": "me"}),
		named(running("old00001", 3*time.Hour), strings.Repeat("日本語", 60), "T-9", nil),
		named(running("young0001", time.Minute), "web-crawler", "", map[string]string{"team": "growth"}),
		ended("done00001", sandbox.StateTerminated, sandbox.Exit{Code: new(0), Class: sandbox.ClassOK}),
		ended("oom000001", sandbox.StateFailed, sandbox.Exit{Code: new(137), Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM, Confidence: sandbox.Certain}),
	}
}

// TestScreens are the screens at every width that matters, for a screen reader, and in a locale
// without UTF-8. No line is longer than the terminal unless it is one word.
func TestScreens(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"ls": "ls", "ls-look": "ls --look", "ls-all": "ls --all", "ls-wide": "ls -o wide --look",
		"top": "top -q", "inspect": "inspect prod/loop0001", "stats": "stats --look", "plan": "cleanup --stuck --unowned --max-fraction 100% --max-delete 5",
		"terminate": "terminate --dry-run prod/loop0001 prod/done00001",
	} {
		for where, at := range map[string]struct {
			width int
			env   string
		}{
			"40": {40, ""}, "80": {80, ""}, "120": {120, ""}, "1": {1, ""},
			"spoken": {80, "SBX_ACCESSIBLE=1"}, "c": {80, "LC_ALL=C"}, "dumb": {80, "TERM=dumb"},
		} {
			bubble.Run(t, name+"-"+where, func(t *testing.T) {
				b, _ := oneFake(screenFleet()...)
				b.tty, b.width, b.env = true, at.width, []string{"NO_COLOR=1", at.env}
				r := b.run(t, line)
				require.Equal(t, 0, r.code, r.stderr)
				golden(t, "screen-"+name+"-"+where, r.stdout+"--- stderr\n"+r.stderr, `r-2\d[\w-]+`)
				assertFits(t, r.stdout, at.width, at.env)
			})
		}
	}
}

// assertFits holds that every line fits, and that no character is beyond what the place shows.
func assertFits(t *testing.T, screen string, width int, env string) {
	t.Helper()
	for line := range strings.Lines(screen) {
		line = strings.TrimSuffix(line, "\n")
		if len(strings.Fields(line)) > 1 && env != "SBX_ACCESSIBLE=1" {
			assert.LessOrEqual(t, displayWidth(line), width, line)
		}
	}
	if env == "LC_ALL=C" {
		assert.Negative(t, strings.IndexFunc(screen, func(r rune) bool { return r > '~' }), screen)
	}
	assert.NotContains(t, screen, "\x1b")
}

// displayWidth is the width of a line in which only the characters of screenFleet are wide.
func displayWidth(line string) int {
	return len([]rune(line)) + strings.Count(line, "日") + strings.Count(line, "本") + strings.Count(line, "語")
}

// TestWhatLsSelectsNeverDependsOnTheTerminal: ended ones need --all or their state, in every
// format and place alike, and a note says how many there are.
func TestWhatLsSelectsNeverDependsOnTheTerminal(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]int{"": 3, "--all": 5, "--state failed": 1, "--state running": 3, "--state failed,terminated": 2} {
		for _, tty := range []bool{true, false} {
			for _, format := range []string{"table", "wide", "csv", "name", "json", "ndjson", "yaml"} {
				b, _ := oneFake(screenFleet()...)
				b.tty, b.width = tty, 120
				r := b.run(t, "ls -o "+format+" "+flags)
				key := "prod/"
				if format == "json" || format == "ndjson" || format == "yaml" {
					key = "raw_state"
				}
				assert.Equal(t, want, strings.Count(r.stdout, key), "%s %s %v", flags, format, tty)
				hidden := "sbx: 2 ended not shown; --all shows them\n"
				assert.Equal(t, flags == "" && key == "prod/", strings.Contains(r.stderr, hidden), r.stderr)
			}
		}
	}
}

func TestLsOnATerminalIsSortedForPeople(t *testing.T) {
	t.Parallel()
	refs := func(line string, tty bool) string {
		b, _ := oneFake(screenFleet()...)
		b.tty, b.width = tty, 120
		var got []string
		for word := range strings.FieldsSeq(b.run(t, line).stdout) {
			if ref, ok := strings.CutPrefix(word, "prod/"); ok {
				got = append(got, ref)
			}
		}
		return strings.Join(got, " ")
	}
	newest := "young0001 loop0001 old00001 done00001 oom000001"
	assert.Equal(t, newest, refs("ls --all", true), "running first, the newest first, ended last")
	assert.Equal(t, "old00001 done00001 oom000001 loop0001 young0001", refs("ls --all --sort -age", true))
	assert.NotEqual(t, newest, refs("ls --all", false), "a pipe gets rows as they arrive")
}

// TestLsOfManyRows: ten thousand rows are one table.
func TestLsOfManyRows(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon})
	for i := range 10_000 {
		p.Add(running("id"+strconv.Itoa(1_000_000+i), time.Duration(i)*time.Second))
	}
	b := newBench(p)
	b.tty, b.width = true, 80
	r := b.run(t, "ls")
	require.Equal(t, 0, r.code)
	assert.Equal(t, 10_000, strings.Count(r.stdout, "prod/"))
	assert.Equal(t, 1, strings.Count(r.stdout, "NAME "))
}
