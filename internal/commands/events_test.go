package commands

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// sessionLines is a session whose agent runs the tests, edits a file and completes.
const sessionLines = `{"id":"1","event_type":"agent.started","event_data":{"message":"go"},"source":"worker","created_at":"2026-11-20T12:00:00Z"}
{"id":"2","event_type":"agent.tool_use","event_data":{"turn":1,"tool":"Bash","input":{"command":"go test \u001b[31m./..."}},"created_at":"2026-11-20T12:00:05Z"}
{"id":"3","event_type":"agent.heartbeat","event_data":{},"source":"worker","created_at":"2026-11-20T12:00:30Z"}
{"id":"4","event_type":"agent.file_edited","event_data":{"turn":2,"file_path":"a.go","change_type":"modified","full_diff":"--- a/a.go\n+++ b/a.go\n-x\n+y\u001b[2J\n"},"created_at":"2026-11-20T12:00:40Z"}
{"id":"5","event_type":"agent.heartbeat","event_data":{},"source":"worker","created_at":"2026-11-20T12:01:00Z"}
{"id":"6","event_type":"agent.completed","event_data":{"success":true},"created_at":"2026-11-20T12:01:10Z"}
`

// withSession is a bench in a folder with these sessions.
func withSession(t *testing.T, sessions map[string]string) *bench {
	t.Helper()
	b := newBench()
	b.workdir = t.TempDir()
	for name, text := range sessions {
		require.NoError(t, os.WriteFile(filepath.Join(b.workdir, name), []byte(text), 0o600))
	}
	return b
}

func TestEventsOfASessionAreOneLineEach(t *testing.T) {
	t.Parallel()
	b := withSession(t, map[string]string{"s.jsonl": sessionLines})
	r := b.run(t, "events s.jsonl")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "AT\tTURN\tTYPE\tWHAT\n"+
		"2026-11-20T12:00:00Z\t\tagent.started\tgo\n"+
		"2026-11-20T12:00:05Z\t1\tagent.tool_use\tBash go test \\x1b[31m./...\n"+
		"2026-11-20T12:00:40Z\t2\tagent.file_edited\tedited a.go +1 -1\n"+
		"2026-11-20T12:01:00Z\t\tagent.heartbeat\t2 heartbeats, none missed\n"+
		"2026-11-20T12:01:10Z\t\tagent.completed\tsuccess\n", r.stdout)
	assert.Equal(t, 7, strings.Count(b.run(t, "events s.jsonl -v").stdout, "\n"), "-v shows each heartbeat")
	assert.Len(t, b.run(t, "events s.jsonl -o json").list(t, "items"), 6, "a document has every event")
}

func TestEventsAreReadFromStandardInput(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.stdin = sessionLines
	assert.Contains(t, b.run(t, "events -").stdout, "go test")
	assert.Contains(t, b.run(t, "events - --diff").stdout, "\n-x\n")
}

// TestAFileReadsAsStandardInput: of a file the events are read twice, of standard input they are kept.
func TestAFileReadsAsStandardInput(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(strings.TrimSpace(sessionLines), "\n")
	disordered := strings.Join([]string{lines[0], lines[3], "garbage\n", lines[2], lines[2], lines[1], `{"event_type":"agent.message","event_data":{"content":"untimed"}}` + "\n", lines[4], lines[5]}, "")
	for name, text := range map[string]string{"in order": sessionLines, "out of order": disordered, "cut": disordered[:len(disordered)-9]} {
		b := withSession(t, map[string]string{"s.jsonl": text})
		b.stdin = text
		for _, flags := range []string{"", " -v", " -o json", " -o ndjson", " -o csv", " --diff", " --diff -o json", " --stats", " --stats -o json", " --columns at,what"} {
			file, stdin := b.run(t, "events s.jsonl"+flags), b.run(t, "events -"+flags)
			assert.Equal(t, stdin.code, file.code, name+flags)
			assert.Equal(t, stdin.stdout, strings.ReplaceAll(file.stdout, "s.jsonl", "standard input"), name+flags)
			assert.Equal(t, stdin.stderr, strings.ReplaceAll(file.stderr, "s.jsonl", "standard input"), name+flags)
		}
	}
}

func TestBrokenLinesAreNamedAndTheOthersShown(t *testing.T) {
	t.Parallel()
	b := withSession(t, map[string]string{"s.jsonl": "garbage\n" + sessionLines + `{"id":"7","event_ty`, "none.jsonl": "garbage\n", "empty.jsonl": ""})
	r := b.run(t, "events s.jsonl -o json")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Len(t, r.list(t, "items"), 6)
	assert.Equal(t, []any{false, 2.0, 1.0}, []any{r.object(t)["complete"], r.object(t)["skipped_lines"], r.object(t)["first_skipped_line"]})
	assert.Contains(t, r.stderr, "line 1 is no event")
	assert.Contains(t, r.stderr, "in the middle of line 8")

	for word, says := range map[string]string{
		"none.jsonl": "no line is an event", "absent.jsonl": "there is no such file", "./absent": "there is no such file", "s.jsonl --stats --diff": "exclude each other",
		"s.jsonl --stats --columns at": "no columns",
	} {
		r := b.run(t, "events "+word)
		assert.Equal(t, 2, r.code, word)
		assert.Contains(t, r.stderr, says, word)
		assert.Empty(t, r.stdout, word)
	}
	r = b.run(t, "events empty.jsonl")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "no events")
}

func TestDiffsAreWholeInAPipeAndCutOnATerminal(t *testing.T) {
	t.Parallel()
	long := strings.ReplaceAll(sessionLines, `+y\u001b[2J\n`, strings.Repeat(`+y\u001b[2J\n`, 100))
	b := withSession(t, map[string]string{"s.jsonl": long})
	r := b.run(t, "events s.jsonl --diff")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, 104, strings.Count(r.stdout, "\n"))
	assert.Contains(t, r.stdout, "+y\\x1b[2J\n")
	assert.NotContains(t, r.stdout, "\x1b")
	b.tty, b.width = true, 100
	r = b.run(t, "events s.jsonl --diff --no-color")
	assert.Equal(t, 42, strings.Count(r.stdout, "\n"), r.stdout)
	assert.Contains(t, r.stdout, "# 63 more lines; -v shows all")
	assert.NotContains(t, r.stdout, "\x1b[2J")
	assert.Contains(t, b.run(t, "events s.jsonl --diff").stdout, "\x1b[32m+y")
	assert.NotContains(t, b.run(t, "events s.jsonl --diff -v").stdout, "more lines")
	items := b.run(t, "events s.jsonl --diff -o json").list(t, "items")
	assert.Contains(t, items[3]["diff"], "+y\x1b[2J\n")
	assert.Nil(t, items[0]["diff"])
}

func TestStatsOfASession(t *testing.T) {
	t.Parallel()
	b := withSession(t, map[string]string{"s.jsonl": sessionLines})
	r := b.run(t, "events s.jsonl --stats")
	assert.Equal(t, 0, r.code, r.stderr)
	for _, says := range []string{"1m10s", "1 Bash", "2 heartbeats, none missed", "usual shape  no: 6 events", "a.go  1      1      1"} {
		assert.Contains(t, r.stdout, says)
	}
	item := b.run(t, "events s.jsonl --stats -o json").item(t)
	assert.Equal(t, []any{6.0, 70.0, true, false, 2.0}, []any{item["events"], item["duration_seconds"], item["success"], item["usual"], item["heartbeats"]})
}

func TestCompareNamesTheFirstDifference(t *testing.T) {
	t.Parallel()
	b := withSession(t, map[string]string{
		"a.jsonl": sessionLines, "b.jsonl": strings.ReplaceAll(sessionLines, "go test", "go vet |"), "later.jsonl": strings.ReplaceAll(sessionLines, "2026-11-20", "2026-11-21"),
		"other.jsonl": strings.ReplaceAll(sessionLines, "+y", "+z"),
	})
	r := b.run(t, "events compare a.jsonl later.jsonl")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "same work: 4 events")

	r = b.run(t, "events compare a.jsonl other.jsonl")
	assert.Contains(t, r.stdout, "diverge at event 3: both edited", "one line that says the same of both would explain nothing")
	assert.Contains(t, r.stdout, ", with different content")

	r = b.run(t, "events compare a.jsonl b.jsonl")
	assert.Equal(t, 10, r.code, r.stderr)
	assert.Contains(t, r.stdout, `diverge at event 2: A ran Bash go test \x1b[31m./..., B ran Bash go vet | \x1b[31m./...`)
	assert.Contains(t, r.stdout, "Only A ran")
	item := b.run(t, "events compare a.jsonl b.jsonl -o json").item(t)
	assert.Equal(t, false, item["same"])
	r = b.run(t, "events compare a.jsonl b.jsonl --format markdown")
	assert.Equal(t, 10, r.code, r.stderr)
	assert.True(t, strings.HasPrefix(r.stdout, "# diverge at event 2"), r.stdout)
	assert.NotContains(t, r.stdout, "\x1b")

	// What could not be read proves no sameness.
	b = withSession(t, map[string]string{"a.jsonl": sessionLines + "{\"id\n", "b.jsonl": sessionLines, "other.jsonl": strings.ReplaceAll(sessionLines, "+y", "+z") + "{\n{\n"})
	r = b.run(t, "events compare a.jsonl b.jsonl")
	assert.Equal(t, 3, r.code, r.stderr)
	assert.Contains(t, r.stdout, "same work as far as it can be read: 4 events; 1 line of A is left out")
	item = b.run(t, "events compare a.jsonl b.jsonl -o json").item(t)
	assert.Equal(t, []any{true, false}, []any{item["same"], item["complete"]})
	r = b.run(t, "events compare a.jsonl other.jsonl")
	assert.Equal(t, 10, r.code, r.stderr)
	assert.Contains(t, r.stdout, "with different content; 1 line of A is left out, 2 lines of B are left out")
	assert.Contains(t, b.run(t, "events other.jsonl --stats").stdout, "2 lines that could not be read")

	for _, line := range []string{"events compare a.jsonl", "events compare a.jsonl absent.jsonl", "events compare a.jsonl b.jsonl --format html"} {
		assert.Equal(t, 2, b.run(t, line).code, line)
	}
}

// TestEventsOfASandboxAreThoseOfItsLife: a provider without events of agents has those of the sandbox.
func TestEventsOfASandboxAreThoseOfItsLife(t *testing.T) {
	t.Parallel()
	b, prod := oneFake(running("aaaa", time.Minute))
	r := b.run(t, "events prod/aaaa")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "2026-11-20T11:59:00Z\t\tcreated\t\n2026-11-20T11:59:00Z\t\tstarted\t\n")
	assert.Equal(t, 5, b.run(t, "events prod/nosuch").code)
	prod.Break(fake.Fault{Op: fake.OpEvents, Err: fault.New(fault.KindUnavailable, "503")})
	r = b.run(t, "events prod/aaaa -o json")
	assert.Equal(t, 7, r.code, r.stderr)
	assert.Len(t, r.list(t, "errors"), 1)
}

// TestTwoLivesAreNoWork: without an event of an agent nobody knows whether two did the same.
func TestTwoLivesAreNoWork(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute), running("bbbb", time.Minute))
	r := b.run(t, "events compare prod/aaaa prod/bbbb")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "no agent has reported what it did; the lives of both sandboxes are alike: 2 events\n")
	assert.NotContains(t, r.stdout, "same work")
}

// TestFollowShowsWhatAFileGrowsBy: in virtual time, until it is interrupted.
func TestFollowShowsWhatAFileGrowsBy(t *testing.T) {
	t.Parallel()
	lines := strings.SplitAfter(sessionLines, "\n")
	b := withSession(t, map[string]string{"s.jsonl": lines[0] + lines[1][:40]})
	file := filepath.Join(b.workdir, "s.jsonl")
	bubble.Run(t, "grows", func(t *testing.T) {
		b.context = func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			grow := time.AfterFunc(time.Second, func() { _ = os.WriteFile(file, []byte(strings.Join(lines[:4], "")), 0o600) })
			end := time.AfterFunc(3*time.Second, cancel)
			t.Cleanup(func() { grow.Stop(); end.Stop(); cancel() })
			return ctx
		}
		r := b.run(t, "events s.jsonl -f")
		assert.Equal(t, 130, r.code, r.stderr)
		assert.Equal(t, "AT\tTURN\tTYPE\tWHAT\n"+
			"2026-11-20T12:00:00Z\t\tagent.started\tgo\n"+
			"2026-11-20T12:00:05Z\t1\tagent.tool_use\tBash go test \\x1b[31m./...\n"+
			"2026-11-20T12:00:40Z\t2\tagent.file_edited\tedited a.go +1 -1\n", r.stdout)
	})
	bubble.Run(t, "is replaced", func(t *testing.T) {
		b := withSession(t, map[string]string{"s.jsonl": lines[0], "new": lines[3] + lines[5]})
		b.context = func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			replace := time.AfterFunc(time.Second, func() { _ = os.Rename(filepath.Join(b.workdir, "new"), filepath.Join(b.workdir, "s.jsonl")) })
			end := time.AfterFunc(3*time.Second, cancel)
			t.Cleanup(func() { replace.Stop(); end.Stop(); cancel() })
			return ctx
		}
		r := b.run(t, "events s.jsonl -f")
		assert.Contains(t, r.stdout, "edited a.go +1 -1\n2026-11-20T12:01:10Z\t\tagent.completed")
		assert.Contains(t, r.stderr, "s.jsonl is another file now, which is read from its beginning")
	})
	for _, line := range []string{"events - -f", "events s.jsonl -f -o json", "events s.jsonl -f --stats"} {
		assert.Equal(t, 2, b.run(t, line).code, line)
	}
}

// TestAFileIsNoSandbox: an assistant names sandboxes and tasks, and opens no path.
func TestAFileIsNoSandbox(t *testing.T) {
	t.Parallel()
	b := withSession(t, map[string]string{"s.jsonl": sessionLines})
	for _, line := range []string{"events s.jsonl --no-file", "events ./s.jsonl --no-file", "events - --no-file"} {
		r := b.run(t, line)
		assert.NotZero(t, r.code, line)
		assert.Empty(t, r.stdout, line)
	}
}
