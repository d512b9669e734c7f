package triage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func lines(texts ...string) []sandbox.LogLine {
	var all []sandbox.LogLine
	for i, text := range texts {
		all = append(all, sandbox.LogLine{At: noon().Add(time.Duration(i) * time.Second), Text: text})
	}
	return all
}

func TestExternalCall(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	for line, want := range map[string]string{
		"Calling https://api.example.com/v1/chat":       "api.example.com",
		"GET http://u:secret@10.0.0.1:8080/x?token=abc": "10.0.0.1:8080",
		"POST /v1/messages?key=secret":                  "/v1/messages",
		"request to api.example.com: waiting":           "api.example.com",
		"fetching \"registry.example\"...":              "registry.example",
		"fetch()":                                       "",
		"connecting to wss://stream.example.com.":       "stream.example.com",
		"waiting for response":                          "",
		"calling user@db.internal?pw=x":                 "db.internal",
		"calling " + strings.Repeat("x", 200):           strings.Repeat("x", maxTarget),
		"GET https://api.example.com/ 200 12ms":         "-",
		"POST https://api.example.com -> 503":           "-",
		`"GET / HTTP/1.1" 404 -`:                        "-",
		"get it done, post the result":                  "-",
		"server listening on http://localhost:3000":     "-",
		"received https://api.example.com":              "-",
		"heartbeat POST https://callback.example":       "-",
		"nothing at all":                                "-",
		"":                                              "-",
		"recalling prefetch forgets":                    "-",
	} {
		target, calls := externalCall(line, m.scanLine(line))
		if want == "-" {
			assert.False(t, calls, "%q", line)
			assert.Empty(t, target)
			continue
		}
		assert.True(t, calls, "%q", line)
		assert.Equal(t, want, target, "%q", line)
	}
}

func TestErrorsAreCounted(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	for line, want := range map[string]int{
		"Error: boom": 1, "TypeError: x is not a function": 1, "Traceback (most recent call last):": 1, "FATAL": 1,
		"panic: oh": 1, "3 tests failed": 1, "10 errors": 1, "java.io.IOException: x": 1,
		"0 errors": 0, "no error": 0, "finished without errors": 0, "errors: 0": 0, "mirror": 0, "erroring": 0, "ok": 0,
	} {
		got := ReadLines(m, lines(line))
		assert.Equal(t, want, got.Errors, "%q", line)
		if want > 0 {
			assert.Equal(t, line, got.Error)
		}
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	got := ReadLines(m, lines("start", "Out of memory", "Error: out of memory again", "", "calling https://a.example", "heartbeat"))
	assert.Equal(t, 6, got.Lines)
	assert.Equal(t, noon().Add(5*time.Second), got.Last)
	assert.Equal(t, 1, got.Errors)
	assert.True(t, got.Calling, "a heartbeat is no answer")
	assert.Equal(t, "a.example", got.Call)
	assert.True(t, hasPattern(got, "out_of_memory"))
	assert.False(t, hasPattern(got, "sigkill"))
	assert.Equal(t, 2, got.Hits[0].Count)
	assert.Equal(t, noon().Add(2*time.Second), got.Hits[0].Last)
	assert.Equal(t, "Error: out of memory again", got.Hits[0].Sample)

	got = ReadLines(m, lines("calling https://a.example", "and now for something else"))
	assert.False(t, got.Calling, "only the last line counts")
	assert.Equal(t, LogFindings{}, ReadLines(m, nil))
	assert.True(t, ReadLines(m, []sandbox.LogLine{{Text: "x"}}).Last.IsZero())
}

func TestRepetition(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	many := func(n int, text func(i int) string) []sandbox.LogLine {
		var all []string
		for i := range n {
			all = append(all, text(i))
		}
		return lines(all...)
	}
	abc := strings.Split("zero one two three four five six seven eight nine", " ")
	for name, tc := range map[string]struct {
		lines []sandbox.LogLine
		want  int
	}{
		"same line":           {many(30, func(int) string { return "retry" }), 30},
		"counter and time":    {many(30, func(i int) string { return fmt.Sprintf("12:00:%02d  Retry %d", i, i) }), 30},
		"only the window":     {many(500, func(int) string { return "retry" }), repeatWindow},
		"two in turn":         {many(50, func(i int) string { return abc[i%2] }), 25},
		"ten in turn":         {many(100, func(i int) string { return abc[i%10] }), 5},
		"a loop that is over": {append(many(60, func(int) string { return "retry" }), many(50, func(i int) string { return abc[i%10] })...), 5},
		"heartbeats":          {many(45, func(i int) string { return fmt.Sprintf("heartbeat %d", i) }), 0},
		"empty lines":         {many(45, func(int) string { return " \t" }), 0},
		"all different":       {many(50, func(i int) string { return abc[i/10] + abc[i%10] }), 1},
		"nothing":             {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, ReadLines(m, tc.lines).Repeat.Count)
		})
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	assert.Equal(t, lineShape("Step 1 of 9"), lineShape("  step 22  OF 3 "))
	assert.Equal(t, lineShape("id a1b2c3"), lineShape("id 99ff"))
	assert.NotEqual(t, lineShape("step one"), lineShape("step two"))
	assert.NotEqual(t, lineShape("a b"), lineShape("ab"))
	assert.NotEqual(t, lineShape("a: b"), lineShape("a; b"))
	assert.Zero(t, lineShape(" \t\r\n"))
}

func TestWatchKeepsNoLog(t *testing.T) {
	t.Parallel()
	w := NewLogWatch(NewMatcher())
	long := "Error: " + strings.Repeat("ü", 1<<16)
	for i := range 10_000 {
		w.Add(sandbox.LogLine{Text: fmt.Sprintf("line %c%c", 'a'+i%26, 'a'+i/26%26)})
	}
	_, found := w.Add(sandbox.LogLine{Text: long})
	assert.False(t, found)
	assert.LessOrEqual(t, len(w.repeats), repeatWindow)
	assert.Len(t, w.window, repeatWindow)
	assert.LessOrEqual(t, len(w.Findings().Error), sampleBytes+3)
	sum := 0
	for _, r := range w.repeats {
		sum += r.Count
	}
	assert.Equal(t, repeatWindow, sum)
}

func BenchmarkLogWatch(b *testing.B) {
	w := NewLogWatch(NewMatcher())
	l := sandbox.LogLine{At: noon(), Text: "2026-01-02T12:00:00Z INFO agent step 17: tool_use Bash ended in 233 ms, 12 files changed, next step planned"}
	b.SetBytes(int64(len(l.Text)))
	b.ReportAllocs()
	for b.Loop() {
		w.Add(l)
	}
}

func hasPattern(f LogFindings, id string) bool {
	return slices.ContainsFunc(f.Hits, func(h Hit) bool { return h.Pattern.ID == id })
}
