package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// written is a running sandbox with these lines, a minute apart, the last at
// noon. A line that begins with ! is of stderr.
func written(id string, lines ...string) fake.Seed {
	seed := running(id, time.Hour)
	for i, text := range lines {
		line := sandbox.LogLine{At: noon.Add(-time.Duration(len(lines)-1-i) * time.Minute), Stream: "stdout", Text: text}
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			line.Stream, line.Text = "stderr", rest
		}
		seed.Logs = append(seed.Logs, line)
	}
	return seed
}

func TestLogsShowsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want string // lines, with | between them
		code int
	}{
		"all":                  {"logs prod/aaaa", "one|two error|three|four error|out of memory|six", 0},
		"by word":              {"logs aaaa", "one|two error|three|four error|out of memory|six", 0},
		"tail":                 {"logs prod/aaaa --tail 2", "out of memory|six", 0},
		"a long tail":          {"logs prod/aaaa --tail 1000000000", "one|two error|three|four error|out of memory|six", 0},
		"since an age":         {"logs prod/aaaa --since 1m", "out of memory|six", 0},
		"since a time":         {"logs prod/aaaa --since 2026-11-20T12:59:00+01:00", "out of memory|six", 0},
		"grep":                 {"logs prod/aaaa --grep error$", "two error|four error", 0},
		"grep without case":    {"logs prod/aaaa --grep (?i)ERROR", "two error|four error", 0},
		"tail of what matches": {"logs prod/aaaa --grep error --tail 1", "four error", 0},
		"long tail of matches": {"logs prod/aaaa --grep error --tail 1000000000", "two error|four error", 0},
		"tail and since":       {"logs prod/aaaa --grep error --tail 5 --since 2m", "four error", 0},
		"patterns":             {"logs prod/aaaa --patterns", "[out_of_memory: out of memory: a leak, or a limit that is too small] out of memory", 0},
		"both filters":         {"logs prod/aaaa --patterns --grep error", "", 0},
		"raw":                  {"logs prod/aaaa --raw --tail 1", "six", 0},
		"raw and grep":         {"logs prod/aaaa --raw --grep error --tail 1", "four error", 0},
		"raw and patterns":     {"logs prod/aaaa --raw --patterns", "out of memory", 0},
		"nothing matches":      {"logs prod/aaaa --grep nothing", "", 0},
		"columns":              {"logs prod/aaaa --tail 1 --columns stream,line", "STREAM\tLINE|stdout\tsix", 0},
		"csv":                  {"logs prod/aaaa --tail 1 -o csv", "at,stream,line,pattern|2026-11-20T12:00:00Z,stdout,six,", 0},
		"wide":                 {"logs prod/aaaa --tail 1 -o wide", "2026-11-20T12:00:00.000Z  stdout  six", 0},
		"table by name":        {"logs prod/aaaa --tail 1 -o table", "2026-11-20T12:00:00.000Z  stdout  six", 0},
		"query":                {"logs prod/aaaa --patterns -o jq=.items[].pattern", "out_of_memory", 0},
		"unknown":              {"logs prod/nope", "", 5},
		"unknown word":         {"logs nope", "", 5},
		"ambiguous":            {"logs twin", "", 2},
		"bad expression":       {"logs prod/aaaa --grep (", "", 2},
		"empty expression":     {"logs prod/aaaa --grep=", "", 2},
		"empty age":            {"logs prod/aaaa --since=", "", 2},
		"bare number":          {"logs prod/aaaa --since 10", "", 2},
		"no such day":          {"logs prod/aaaa --since 2026-13-01T00:00:00Z", "", 2},
		"no lines":             {"logs prod/aaaa --tail 0", "", 2},
		"negative":             {"logs prod/aaaa --tail -1", "", 2},
		"names":                {"logs prod/aaaa -o name", "", 2},
		"no check":             {"logs prod/aaaa -o nagios", "", 2},
		"unknown column":       {"logs prod/aaaa --columns text", "", 2},
		"raw json":             {"logs prod/aaaa --raw -o json", "", 2},
		"raw wide":             {"logs prod/aaaa --raw -o wide", "", 2},
		"raw columns":          {"logs prod/aaaa --raw --columns line", "", 2},
		"follow json":          {"logs prod/aaaa -f -o json", "", 2},
		"follow yaml":          {"logs prod/aaaa -f -o yaml", "", 2},
		"follow template":      {"logs prod/aaaa -f -o template=x", "", 2},
		"no sandbox":           {"logs", "", 2},
		"two sandboxes":        {"logs prod/aaaa prod/twin1", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := oneFake(written("aaaa", "one", "!two error", "three", "four error", "!out of memory", "six"), running("twin1", 0), running("twin2", 0))
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, r.stderr)
			assert.Equal(t, tc.want, strings.ReplaceAll(strings.TrimSuffix(r.stdout, "\n"), "\n", "|"))
			if tc.code == 2 {
				assert.Regexp(t, "hint|write it like", r.stderr)
				assert.Empty(t, p.Calls(fake.OpLogs))
			}
		})
	}
}

func TestLogsKeysAreThePromisedOnes(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(written("aaaa", "fine", "!JavaScript heap out of memory"))
	r := b.run(t, "logs prod/aaaa -o json")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "sbx.logs/v1", r.object(t)["schema"])
	assert.Equal(t, true, r.object(t)["complete"])
	assert.Equal(t, []map[string]any{
		{"at": "2026-11-20T11:59:00Z", "stream": "stdout", "line": "fine", "pattern": ""},
		{"at": "2026-11-20T12:00:00Z", "stream": "stderr", "line": "JavaScript heap out of memory", "pattern": "node_heap"},
	}, r.list(t, "items"))

	seed := running("bbbb", time.Minute)
	seed.Logs = []sandbox.LogLine{{Text: "when?"}}
	b, _ = oneFake(seed)
	assert.Equal(t, []map[string]any{{"at": nil, "stream": "", "line": "when?", "pattern": ""}}, b.run(t, "logs prod/bbbb -o json").list(t, "items"))
	assert.Equal(t, strings.Repeat(" ", 23)+"-          when?\n", b.run(t, "logs prod/bbbb -o wide").stdout, "lines stay below each other")
}

func TestLogsWithoutLines(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Minute))
	for line, says := range map[string]string{
		"logs prod/aaaa":              "prod/aaaa: no output yet",
		"logs prod/aaaa --grep x":     "prod/aaaa: no such lines",
		"logs prod/aaaa --since 1m":   "prod/aaaa: no such lines",
		"logs prod/aaaa --raw":        "",
		"logs prod/aaaa -q":           "",
		"logs prod/aaaa -o ndjson -q": "",
	} {
		r := b.run(t, line)
		assert.Equal(t, 0, r.code, line)
		assert.Contains(t, r.stderr, says, line)
		if says == "" {
			assert.Empty(t, r.stderr, line)
		}
	}
	r := b.run(t, "logs prod/aaaa -o json")
	assert.Empty(t, r.list(t, "items"))
	assert.Equal(t, true, r.object(t)["complete"])
}

func TestLogsNeutralisesWhatTheProgramWrote(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;owned\x07\x1b[2J\u202eout of memory\r\x9b\xff\ttab"
	b, _ := oneFake(written("aaaa", evil))
	for _, flags := range []string{"", "-o wide", "--patterns", "--columns line", "-o csv", "-o json", "-o ndjson", "-o yaml", "-o jq=.items[0].line", "-o template={{.items}}"} {
		for _, b.tty = range []bool{true, false} {
			r := b.run(t, "logs prod/aaaa "+flags)
			require.Equal(t, 0, r.code, r.stderr)
			assert.Contains(t, r.stdout, "out of memory", flags)
			for _, bad := range []string{"\x1b", "\x07", "\u202e", "\r", "\x9b", "\xff"} {
				assert.NotContains(t, r.stdout, bad, "%q %s", bad, flags)
			}
		}
	}
	assert.Equal(t, evil+"\n", b.run(t, "logs prod/aaaa --raw").stdout)
}

func TestLogsStandsBelowEachOtherAt80Columns(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(written("aaaa", "starting", "!Error: connect ETIMEDOUT 10.0.0.1:443", "RangeError: Maximum call stack size exceeded"))
	b.tty, b.width = true, 80
	golden(t, "logs-wide", b.run(t, "logs prod/aaaa -o wide --no-color").stdout)
	golden(t, "logs-patterns", b.run(t, "logs prod/aaaa --patterns --no-color").stdout)
}

func TestLogsNamesItsSourceOnce(t *testing.T) {
	t.Parallel()
	seed := written("aaaa", "one", "two", "three")
	for i := range seed.Logs {
		seed.Logs[i].Source, seed.Logs[i].Truncated = "sbx-file", true
	}
	b, _ := oneFake(seed)
	r := b.run(t, "logs prod/aaaa")
	assert.Equal(t, "one\ntwo\nthree\n", r.stdout)
	assert.Equal(t, "sbx: these lines come from sbx-file, not from the provider\nsbx: some lines are incomplete: they were too long, or output next to them is missing\n", r.stderr)
	assert.Empty(t, b.run(t, "logs prod/aaaa -q").stderr)
}

// TestLogsSayWhatIsMissing: a log whose older lines were dropped is not complete, and
// says how much there was.
func TestLogsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	count := func(n int64) *int64 { return &n }
	seed := written("aaaa", "two error", "three", "four error")
	gap := sandbox.MissingOutput("older output was dropped", sandbox.LogGap{Lines: count(141722), Bytes: count(3 << 20)})
	gap.At = seed.Logs[0].At
	seed.Logs = append([]sandbox.LogLine{gap}, seed.Logs...)
	for name, tc := range map[string]struct {
		line    string
		missing float64
		lines   int
	}{
		"all":                    {"logs prod/aaaa", 141722, 3},
		"a tail that is there":   {"logs prod/aaaa --tail 3", 0, 3},
		"a tail that is not":     {"logs prod/aaaa --tail 4", 141722, 3},
		"a filter":               {"logs prod/aaaa --grep error", 141722, 2},
		"matches that are there": {"logs prod/aaaa --grep error --tail 2", 0, 2},
		"matches that are not":   {"logs prod/aaaa --grep error --tail 3", 141722, 2},
		"since then":             {"logs prod/aaaa --since 1m", 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := oneFake(seed)
			r := b.run(t, tc.line+" -o json")
			assert.Equal(t, 0, r.code, r.stderr)
			got := r.object(t)
			assert.Len(t, r.list(t, "items"), tc.lines)
			assert.Equal(t, tc.missing == 0, got["complete"])
			assert.Equal(t, tc.missing > 0, got["truncated"])
			assert.InDelta(t, tc.missing, got["missing_lines"], 0)
			text := b.run(t, tc.line)
			assert.NotContains(t, text.stdout, "dropped", "stdout is the program's")
			assert.Equal(t, tc.missing > 0, strings.Contains(text.stderr, "sbx: older output was dropped: 141722 lines, 3.0 MiB missing\n"), text.stderr)
			assert.NotContains(t, text.stderr, "not whole")
		})
	}

	only := running("bbbb", time.Minute)
	only.Logs = []sandbox.LogLine{sandbox.MissingOutput("the disk was full", sandbox.LogGap{})}
	b, _ := oneFake(only)
	assert.Equal(t, "sbx: the disk was full\nsbx: its output is not kept\n", b.run(t, "logs prod/bbbb").stderr)
	assert.Nil(t, b.run(t, "logs prod/bbbb -o json").object(t)["missing_lines"], "unknown is null")
}

func TestLogsWhenItCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fake.Fault
		line  string
		kind  string
		code  int
	}{
		"not listed": {fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")}, "logs aaaa -o json", "unavailable", 7},
		"no log":     {fake.Fault{Op: fake.OpLogs, Err: fault.New(fault.KindUnavailable, "503")}, "logs prod/aaaa -o json", "unavailable", 7},
		"no rights":  {fake.Fault{Op: fake.OpLogs, Err: fault.New(fault.KindAuth, "403")}, "logs prod/aaaa -o json", "auth", 4},
		"gone":       {fake.Fault{Op: fake.OpLogs, Err: fault.New(fault.KindGone, "expired")}, "logs prod/aaaa -o json", "gone", 6},
		"limit":      {fake.Fault{Op: fake.OpLogs, Hang: true}, "logs prod/aaaa -o json --timeout 1s", "timeout", 124},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(written("aaaa", "one"))
			p.Break(tc.fault)
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Empty(t, r.list(t, "items"))
			assert.Equal(t, false, r.object(t)["complete"])
			require.Len(t, r.list(t, "errors"), 1)
			assert.Equal(t, tc.kind, r.list(t, "errors")[0]["kind"])
		})
	}
	_, p := oneFake(running("aaaa", time.Minute))
	r := (&bench{members: []providers.Provider{p.Bare()}}).run(t, "logs prod/aaaa -o json")
	assert.Equal(t, 9, r.code)
	assert.Equal(t, "unsupported", r.list(t, "errors")[0]["kind"])
}

// breaking is a log that fails after its second line.
type breaking struct{ *fake.Provider }

func (p breaking) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		for line, err := range p.Provider.Logs(ctx, id, q) {
			if !yield(line, err) {
				return
			}
		}
		yield(sandbox.LogLine{}, fault.New(fault.KindUnavailable, "the connection was lost"))
	}
}

func TestLogsKeepsWhatCameBeforeAnError(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--raw", "--grep . --tail 2"} {
		_, p := oneFake(written("aaaa", "one", "two"))
		r := (&bench{members: []providers.Provider{breaking{p}}}).run(t, "logs prod/aaaa "+flags)
		assert.Equal(t, 3, r.code, flags)
		assert.Equal(t, "one\ntwo\n", r.stdout, flags)
		assert.Contains(t, r.stderr, "the connection was lost", flags)
	}
}

// endless writes lines until nobody wants more, a million at most.
type endless struct {
	*fake.Provider

	lines int
}

func (p *endless) Logs(ctx context.Context, _ string, _ providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		for ; p.lines < 1_000_000 && ctx.Err() == nil; p.lines++ {
			if !yield(sandbox.LogLine{Stream: "stdout", Text: "step"}, nil) {
				return
			}
		}
	}
}

func TestAClosedStdoutEndsTheReadingOfALog(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--raw", "-f"} {
		_, fakes := oneFake(running("aaaa", time.Minute))
		p := &endless{Provider: fakes}
		b := &bench{members: []providers.Provider{p}}
		b.adjust = printTo(closedPipe{})
		r := b.run(t, "logs prod/aaaa "+flags)
		require.ErrorIs(t, r.err, output.ErrClosed, flags)
		assert.Less(t, p.lines, 500_000, flags)
	}
}

func TestLogsWhereStdoutFails(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"", "--raw", "--grep . --tail 2", "-o json"} {
		b, _ := oneFake(written("aaaa", "one", "two"))
		b.adjust = printTo(closedPipe{})
		r := b.run(t, "logs prod/aaaa "+flags)
		require.ErrorIs(t, r.err, output.ErrClosed, flags)
		assert.Empty(t, r.stderr, flags)

		b.adjust = printTo(fullDisk{})
		r = b.run(t, "logs prod/aaaa "+flags)
		assert.Equal(t, 1, r.code, flags)
		assert.Contains(t, r.stderr, "no space left", flags)
	}
}

// printTo gives a verb another stdout.
func printTo(w io.Writer) func(*Deps) {
	return func(d *Deps) {
		d.Process.Stdout.Writer = w
		d.Printer = sync.OnceValues(func() (*output.Printer, error) {
			format, err := output.ParseFormat(context.Background(), d.Globals.Output)
			return output.New(d.Process, output.Options{Format: format, Columns: d.Globals.Columns}), err
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// screen is a stdout that can be watched while the verb runs.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

var _ io.Writer = (*screen)(nil)

func TestLogsFollowsUntilTheSandboxEnds(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"":                  "one\ntwo\nerror three\n",
		"--tail 1":          "two\nerror three\n",
		"--grep error":      "error three\n",
		"--raw --tail 1":    "two\nerror three\n",
		"-o csv":            "at,stream,line,pattern\n,,one,\n,,two,\n,,error three,\n",
		"--columns line":    "LINE\none\ntwo\nerror three\n",
		"--tail 1 --grep o": "two\nerror three\n",
		"--grep o -o wide":  strings.Repeat(" ", 23) + "-          one\n" + strings.Repeat(" ", 23) + "-          two\n" + strings.Repeat(" ", 23) + "-          error three\n",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			seed := running("aaaa", time.Minute)
			seed.Logs = []sandbox.LogLine{{Text: "one"}, {Text: "two"}}
			b, p := oneFake(seed)
			out := &screen{}
			b.tty = true
			b.adjust = printTo(out)
			done := make(chan result)
			go func() { done <- b.run(t, "logs prod/aaaa -f "+flags) }()
			require.Eventually(t, func() bool { return len(p.Calls(fake.OpLogs)) == 1 }, time.Minute, time.Millisecond)
			p.Write("aaaa", sandbox.LogLine{Text: "error three"})
			require.Eventually(t, func() bool { return strings.Contains(out.String(), "error three") }, time.Minute, time.Millisecond,
				"a line that is followed shows at once")
			require.NoError(t, p.Terminate(t.Context(), "aaaa", providers.TerminateOptions{}))
			r := <-done
			assert.Equal(t, 0, r.code, r.stderr)
			assert.Equal(t, want, strings.ReplaceAll(out.String(), " \n", "\n"))
		})
	}
}

func TestLogsFollowIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cause       error
		code        int
		interrupted string
	}{
		"by a signal": {fault.New(fault.KindCanceled, "interrupted"), 130, "true"},
		"by SIGTERM":  {fault.New(fault.KindTerminated, "interrupted by SIGTERM"), 143, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := oneFake(written("aaaa", "one"))
			b.context = func(ctx context.Context) context.Context {
				ctx, cancel := context.WithCancelCause(ctx)
				go func() {
					for len(p.Calls(fake.OpLogs)) == 0 && t.Context().Err() == nil {
						<-time.After(time.Millisecond)
					}
					cancel(tc.cause)
				}()
				return ctx
			}
			r := b.run(t, "logs prod/aaaa -f -o ndjson")
			assert.Equal(t, tc.code, r.code, r.stderr)
			lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
			assert.Contains(t, lines[len(lines)-1], fmt.Sprintf(`"exit_code":%d,"interrupted":%s`, tc.code, tc.interrupted))
		})
	}
}

func TestLogsFollowEndsByItsLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(written("aaaa", "one"))
		r := b.run(t, "logs prod/aaaa -f --timeout 1s")
		assert.Equal(t, 124, r.code)
		assert.Equal(t, "one\n", r.stdout)
		assert.Equal(t, "sbx: error: the limit of --timeout 1s was reached\n", r.stderr)
	})
}

func TestLogsReadsALongLogInOrder(t *testing.T) {
	t.Parallel()
	seed := running("aaaa", time.Minute)
	seed.Flood = 50_000
	b, _ := oneFake(seed)
	r := b.run(t, "logs prod/aaaa --grep 9$ --tail 3")
	assert.Equal(t, "line 49979\nline 49989\nline 49999\n", r.stdout)
}

func TestLogsExplainsABadExpression(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(written("aaaa", "one"))
	r := b.runArgs(t, "logs", "prod/aaaa", "--grep", "(\x1b")
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, `--grep: missing closing ): `)
	assert.Contains(t, r.stderr, "RE2")
	assert.NotContains(t, r.stderr, "\x1b")
}
