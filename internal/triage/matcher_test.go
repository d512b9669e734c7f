package triage

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMatchEachPattern(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	seen := map[string]bool{}
	for line, want := range map[string]string{
		"Fatal error in message reader: Command failed with exit code -9 (exit code: -9)": "sigkill", // S0-2
		"run: signal: killed":                                                               "sigkill",
		"[ 12.3] Out of memory: Killed process 77 (node)":                                   "kernel_oom",
		"Memory cgroup out of memory: Killed process 1":                                     "kernel_oom",
		"Error: Cannot write to terminated process":                                         "terminated_process",
		"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory": "node_heap",
		"RangeError: Array buffer allocation failed":                                        "node_heap",
		"fatal error: runtime: out of memory":                                               "go_heap",
		"MemoryError":                                                                       "python_heap",
		"numpy: MemoryError: Unable to allocate 8.00 GiB":                                   "python_heap",
		`Exception in thread "main" java.lang.OutOfMemoryError: Java heap space`:            "java_heap",
		"Error: spawn ENOMEM":                                                               "enomem",
		"sh: fork: Cannot allocate memory":                                                  "enomem",
		"Out of memory":                                                                     "out_of_memory", // R40
		"OUT OF MEMORY!":                                                                    "out_of_memory",
		"write: No space left on device":                                                    "disk_full",
		"bash: fork: retry: Resource temporarily unavailable":                               "process_limit",
		"sh: 1: Cannot fork":                                                                "process_limit",
		"RuntimeError: can't start new thread":                                              "process_limit",
		"Error: spawn EAGAIN":                                                               "process_limit",
		"OSError: [Errno 24] Too many open files: 'x'":                                      "open_files",
		"Error: EMFILE: too many open files, open 'x'":                                      "open_files",
		"read: Resource temporarily unavailable":                                            "resource_warning",
		"WARN High memory usage 91%":                                                        "resource_warning",
		"RangeError: Maximum call stack size exceeded":                                      "recursion",
		"Maximum call stack exceeded":                                                       "recursion",           // R39
		"Maximum iterations exceeded - possible infinite loop":                              "iterations",          // R65
		"Agent execution timeout":                                                           "agent_timeout",       // R66
		"Sandbox operation timeout":                                                         "operation_limit",     // R130
		"Inactivity timeout":                                                                "inactivity_timeout",  // S1-13
		"Request timeout after 10000ms":                                                     "request_timeout",     // R76
		"Operation timed out":                                                               "operation_timed_out", // R38
		"connect ETIMEDOUT 10.0.0.1:443":                                                    "operation_timed_out",
		"read tcp: i/o timeout":                                                             "operation_timed_out",
		"connect ECONNREFUSED 127.0.0.1:80":                                                 "network",
		"API Error 429 Too Many Requests":                                                   "rate_limit",
		`{"type":"overloaded_error"}`:                                                       "rate_limit",
		"Invalid API key · Please run /login":                                               "auth",
		"Credit balance is too low":                                                         "credit",
		"Resource limit exceeded":                                                           "resource_limit",    // R107
		"Maximum sandbox limit reached":                                                     "sandbox_limit",     // R111
		"sandbox not found":                                                                 "sandbox_not_found", // R96
		"found 3 orphaned sandboxes":                                                        "orphaned",
		"Unhealthy sandbox detected: sandbox_123":                                           "unhealthy",
		"Starting sandbox cleanup":                                                          "cleanup_started", // R89
		"Sandbox cleanup started":                                                           "cleanup_started", // R54
		"Found 3 sandboxes to cleanup":                                                      "cleanup_found",
		"Cleaned up sandbox sandbox_123":                                                    "cleanup_removed",
		"Cleaned up sandbox_123":                                                            "cleanup_removed",
		"Failed to cleanup sandbox_123: boom":                                               "cleanup_item_failed",
		"Cleanup completed: 3 sandboxes removed":                                            "cleanup_completed",
		"Cleanup job failed: boom":                                                          "cleanup_failed",
		"\x1b[31mOut of memory\x1b[0m":                                                      "out_of_memory",
		"\x1b[1;31mMemoryError\x1b[0m":                                                      "python_heap",
		"":                                                                                  "",
		"all good, memory 12 MB":                                                            "",
		"exit code -90":                                                                     "",
		"exit code -9x":                                                                     "",
		"throughout of memory":                                                              "",
		"mOut of memory":                                                                    "",
		"processed 429 files":                                                               "",
		"cleanup_completed_at":                                                              "",
		"Grate limit":                                                                       "",
		"unit tests for the word error passed":                                              "",
		"an operation\ttimed out":                                                           "",
		strings.Repeat("x", maxScan) + " Out of memory":                                     "",
		strings.Repeat("ü", 100) + " Out of memory " + strings.Repeat("Out of memor", 10): "out_of_memory",
		"out of out of memor out of memory":                                               "out_of_memory",
		"agent started, agent execution timeou, Agent execution timeout":                  "agent_timeout",
	} {
		p, found := m.Match(line)
		assert.Equal(t, want, p.ID, "%.80q", line)
		assert.Equal(t, want != "", found)
		seen[p.ID] = true
	}
	for _, p := range Patterns() {
		assert.True(t, seen[p.ID], "no line for pattern %s", p.ID)
	}
}

func TestPatternsAreWellFormed(t *testing.T) {
	t.Parallel()
	ids, literals := map[string]bool{}, map[string]string{}
	for _, p := range Patterns() {
		assert.False(t, ids[p.ID], "%s twice", p.ID)
		ids[p.ID] = true
		assert.NotEmpty(t, p.Say, p.ID)
		assert.Contains(t, []Severity{Info, Warning, Critical}, p.Severity, p.ID)
		for _, l := range p.literals {
			assert.Equal(t, strings.ToLower(l), l)
			assert.Empty(t, literals[l], "%q stands in %s too", l, p.ID)
			literals[l] = p.ID
		}
	}
}

// naive is what Match promises, without the automaton.
func naive(m *Matcher, line string) int {
	best := -1
	lower := asciiLower(line)
	for i := range m.literals {
		l := &m.literals[i]
		for from := 0; l.pattern >= 0 && from <= len(lower); {
			at := strings.Index(lower[from:], l.text)
			if at < 0 {
				break
			}
			if l.matchesAt(line, from+at+len(l.text)) && (best < 0 || l.pattern < best) {
				best = l.pattern
			}
			from += at + 1
		}
	}
	return best
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// TestAutomatonFindsWhatASearchFinds runs over random joins of literal pieces,
// which is where a wrong suffix link would show.
func TestAutomatonFindsWhatASearchFinds(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	r := rand.New(rand.NewPCG(3, 4)) // a seed that repeats
	for range 5_000 {
		var line strings.Builder
		for range 1 + r.IntN(5) {
			text := m.literals[r.IntN(len(m.literals))].text
			line.WriteString(text[r.IntN(len(text)/2+1) : len(text)-r.IntN(len(text)/3+1)])
			line.WriteString([]string{"", " ", "-", "A"}[r.IntN(4)])
		}
		require.Equal(t, naive(m, line.String()), m.scanLine(line.String()).pattern, "%q", line.String())
	}
}

func FuzzMatch(f *testing.F) {
	m := NewMatcher()
	for _, p := range Patterns() {
		f.Add(p.literals[0])
	}
	f.Add("\x1b[mGET https://u:p@h.example:443/x?y=1 200")
	f.Add("\xff\x00\x1b[31")
	f.Fuzz(func(t *testing.T, line string) {
		p, found := m.Match(line)
		if found != (p.ID != "") {
			t.Fatalf("found %v, pattern %q", found, p.ID)
		}
		if len(line) < maxScan && m.scanLine(line).pattern != naive(m, line) {
			t.Fatalf("automaton and search differ on %q", line)
		}
		target, calls := externalCall(line, m.scanLine(line))
		if len(target) > maxTarget || !calls && target != "" || strings.ContainsAny(target, "?@ \n") {
			t.Fatalf("target %q of %q", target, line)
		}
		if (lineShape(line) == 0) != (strings.TrimFunc(line, func(r rune) bool { return r <= ' ' }) == "") {
			t.Fatalf("shape of %q", line)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	m := NewMatcher()
	line := "2026-01-02T12:00:00Z INFO agent step 17: tool_use Bash finished in 233 ms, 12 files changed, next step planned; nothing to see here, moving on"
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		m.Match(line)
	}
}

func BenchmarkNewMatcher(b *testing.B) {
	for b.Loop() {
		buildMatcher()
	}
}
