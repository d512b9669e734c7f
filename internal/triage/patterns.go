package triage

import (
	"fmt"
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

// Severity grades a pattern or a flag.
type Severity string

// The severities, mildest first.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// Pattern is a known message in log lines.
type Pattern struct {
	ID       string        // as `logs` shows it
	Cause    sandbox.Cause // that it is evidence for; CauseUnknown where it names no cause
	Severity Severity
	Say      string
	Resource bool // a memory or resource warning (R13)

	literals []string // lower case; one of them, as whole words
}

// Patterns lists all patterns. Where a line matches several, the first one counts, so
// specific patterns precede general ones.
func Patterns() []Pattern {
	var all []Pattern
	for _, group := range [][]Pattern{killPatterns(), memoryPatterns(), loopPatterns(), waitPatterns(), accessPatterns(), fleetPatterns(), cleanupPatterns()} {
		all = append(all, group...)
	}
	return all
}

func killPatterns() []Pattern {
	return []Pattern{
		{
			ID: "sigkill", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say:      "the agent process was killed with SIGKILL; that alone does not show by whom",
			literals: []string{"exit code -9", "exit code: -9", "signal: killed", "signal sigkill"},
		}, {
			ID: "kernel_oom", Cause: sandbox.CauseOOM, Severity: Critical, Resource: true,
			Say: "the kernel's message of an OOM kill; only its counter proves whose",
			literals: []string{
				"out of memory: kill process", "out of memory: killed process", "memory cgroup out of memory", "invoked oom-killer", "oom-kill:constraint",
			},
		}, {
			ID: "terminated_process", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say:      "the session's process is dead: start a new session, do not reuse this one",
			literals: []string{"cannot write to terminated process"},
		},
	}
}

func memoryPatterns() []Pattern {
	heap := func(id, say string, literals ...string) Pattern {
		return Pattern{ID: id, Cause: sandbox.CauseRuntimeHeap, Severity: Critical, Say: say, Resource: true, literals: literals}
	}
	return []Pattern{
		heap("node_heap", "Node reached its own heap limit, not the sandbox's limit",
			"javascript heap out of memory", "reached heap limit", "ineffective mark-compacts near heap limit",
			"array buffer allocation failed", "fatal process out of memory", "fatal process oom"),
		heap("go_heap", "the Go runtime got no memory",
			"runtime: out of memory", "runtime: cannot map pages", "failed to reserve page summary", "runtime: cannot allocate memory"),
		heap("python_heap", "Python got no memory", "memoryerror", "unable to allocate"),
		heap("java_heap", "the Java heap is full", "outofmemoryerror", "java heap space", "gc overhead limit exceeded"),
		heap("enomem", "the system refused memory", "enomem", "cannot allocate memory", "std::bad_alloc", "memory allocation of", "virtual memory exhausted"),
		{
			ID: "out_of_memory", Cause: sandbox.CauseLeak, Severity: Critical, Resource: true,
			Say: "out of memory: a leak, or a limit that is too small", literals: []string{"out of memory"},
		},
		{
			ID: "process_limit", Cause: sandbox.CauseProcessLimit, Severity: Critical, Resource: true,
			Say: "no further process or thread could start: a limit of processes is reached",
			literals: []string{
				"fork: retry: resource temporarily unavailable", "fork: resource temporarily unavailable", "fork failed: resource temporarily unavailable",
				"fork/exec: resource temporarily unavailable", "cannot fork", "can't fork", "couldn't fork", "unable to fork", "can't start new thread",
				"unable to create native thread", "unable to create new native thread", "failed to create new os thread", "pthread_create failed",
				"pthread_create: resource temporarily unavailable", "spawn eagain", "no more processes", "blockingioerror: [errno 11]",
				"thread creation failed", "failed to spawn thread", "uv_thread_create",
			},
		},
		{
			ID: "open_files", Cause: sandbox.CauseFileLimit, Severity: Critical, Resource: true,
			Say:      "no further file or connection could be opened: a limit of open files is reached",
			literals: []string{"too many open files", "emfile", "enfile", "no file descriptors available"},
		},
		{
			ID: "disk_full", Cause: sandbox.CauseDiskFull, Severity: Critical, Resource: true,
			Say: "the disk, or a quota of it, is full", literals: []string{"no space left on device", "enospc", "disk quota exceeded", "edquot"},
		},
		{
			ID: "resource_warning", Cause: sandbox.CauseUnknown, Severity: Warning, Resource: true,
			Say: "memory or another resource is nearly exhausted",
			literals: []string{
				"high memory usage", "memory usage is high", "memory warning", "low memory", "memory pressure", "memory leak detected",
				"maxlistenersexceededwarning", "resource temporarily unavailable", "resource warning", "resource exhausted", "resource_exhausted",
			},
		},
	}
}

func loopPatterns() []Pattern {
	return []Pattern{
		{
			ID: "recursion", Cause: sandbox.CauseBusyLoop, Severity: Critical,
			Say: "infinite recursion",
			literals: []string{
				"maximum call stack exceeded", "maximum call stack size exceeded", "maximum recursion depth exceeded", "stack overflow",
				"goroutine stack exceeds",
			},
		}, {
			ID: "iterations", Cause: sandbox.CauseBusyLoop, Severity: Critical,
			Say:      "the agent's iteration limit stopped a loop",
			literals: []string{"maximum iterations exceeded", "max iterations exceeded", "possible infinite loop"},
		},
	}
}

func waitPatterns() []Pattern {
	return []Pattern{
		{
			ID: "agent_timeout", Cause: sandbox.CauseTimeout, Severity: Critical,
			Say: "the agent ran into its own time limit", literals: []string{"agent execution timeout"},
		}, {
			ID: "operation_limit", Cause: sandbox.CauseTimeout, Severity: Critical,
			Say: "an operation ran into its time limit", literals: []string{"sandbox operation timeout", "sandbox timeout", "sandbox timed out"},
		}, {
			ID: "inactivity_timeout", Cause: sandbox.CauseInactivity, Severity: Critical,
			Say: "no activity for too long", literals: []string{"inactivity timeout"},
		}, {
			ID: "request_timeout", Cause: sandbox.CauseHungIO, Severity: Warning,
			Say: "a request got no answer in time", literals: []string{"request timed out", "request timeout"},
		}, {
			ID: "operation_timed_out", Cause: sandbox.CauseHungIO, Severity: Warning,
			Say: "an external service hangs",
			literals: []string{
				"operation timed out", "connection timed out", "read timed out", "i/o timeout", "etimedout", "context deadline exceeded", "timeouterror",
				"gateway timeout",
			},
		}, {
			ID: "network", Cause: sandbox.CauseUnknown, Severity: Warning,
			Say: "the network or a peer fails",
			literals: []string{
				"econnreset", "econnrefused", "enotfound", "eai_again", "socket hang up", "connection refused", "connection reset by peer",
				"network is unreachable", "no such host",
			},
		},
	}
}

func accessPatterns() []Pattern {
	return []Pattern{
		{
			ID: "rate_limit", Cause: sandbox.CauseUnknown, Severity: Warning,
			Say: "a service throttles or is overloaded: wait, then retry",
			literals: []string{
				"rate limit", "rate limited", "rate limits", "rate_limit", "rate_limit_error", "ratelimiterror", "too many requests",
				"overloaded_error", "overloaded", "http 429", "status 429", "status code 429", "error 429",
			},
		}, {
			ID: "auth", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say: "credentials are missing, wrong or expired: a retry cannot help",
			literals: []string{
				"unauthorized", "invalid api key", "invalid_api_key", "invalid x-api-key", "authentication_error", "authentication failed",
				"token expired", "token has expired", "permission_error", "403 forbidden", "not logged in",
			},
		}, {
			ID: "credit", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say: "the account has no credit or quota left", literals: []string{"credit balance is too low", "insufficient_quota", "quota exceeded", "billing_error"},
		},
	}
}

func fleetPatterns() []Pattern {
	return []Pattern{
		{
			ID: "resource_limit", Cause: sandbox.CauseUnknown, Severity: Critical, Resource: true,
			Say: "the provider's resources are exhausted", literals: []string{"resource limit exceeded"},
		}, {
			ID: "sandbox_limit", Cause: sandbox.CauseUnknown, Severity: Critical, Resource: true,
			Say: "no more sandboxes are admitted", literals: []string{"maximum sandbox limit reached"},
		}, {
			ID: "sandbox_not_found", Cause: sandbox.CauseOrphan, Severity: Warning,
			Say: "records and reality differ", literals: []string{"sandbox not found"},
		}, {
			ID: "orphaned", Cause: sandbox.CauseOrphan, Severity: Warning,
			Say: "a sandbox has lost its owner", literals: []string{"orphaned sandbox", "orphaned sandboxes", "orphan sandbox"},
		}, {
			ID: "unhealthy", Cause: sandbox.CauseUnknown, Severity: Warning,
			Say: "a health check failed", literals: []string{"unhealthy sandbox detected"},
		},
	}
}

// cleanupPatterns knows both spellings of the cleanup log.
func cleanupPatterns() []Pattern {
	line := func(id string, severity Severity, say string, literals ...string) Pattern {
		return Pattern{ID: id, Cause: sandbox.CauseNone, Severity: severity, Say: say, literals: literals}
	}
	return []Pattern{
		line("cleanup_failed", Critical, "the cleanup job failed", "cleanup job failed"),
		line("cleanup_item_failed", Warning, "cleanup could not remove a sandbox", "failed to cleanup"),
		line("cleanup_started", Info, "cleanup began", "sandbox cleanup started", "starting sandbox cleanup"),
		line("cleanup_removed", Info, "cleanup removed a sandbox", "cleaned up"),
		line("cleanup_completed", Info, "cleanup ended", "cleanup completed"),
		line("cleanup_found", Info, "cleanup chose its sandboxes", "sandboxes to cleanup", "sandbox to cleanup"),
	}
}

// Spelled is an exit in one common form, parsed from the source's text.
type Spelled struct {
	Code   *int            // 128+n for signal n; nil when the text contains no exit
	Signal string          // "SIGKILL"; empty without one
	Death  sandbox.Verdict // died by that signal: True where the text says so, Unknown for a bare number
}

// ParseExit reads 137, -9, "exit status 3", "exit code: -9", "signal: killed
// (core dumped)", "signal: 9 (SIGKILL)", "killed by signal 9", SIGKILL. Minus n and
// 128+n are signal n; 247 is -9 truncated to a byte, as a program shows it that exits with
// a child's -9. Any other text gives no Code and an Unknown death.
func ParseExit(raw string) Spelled {
	text := strings.ToLower(strings.TrimSpace(raw))
	text, _, _ = strings.Cut(text, " and error")
	text = strings.TrimSpace(strings.TrimSuffix(text, "(core dumped)"))
	if name, found := cutIntro(text, "signal:", "signal ", "killed by signal ", "terminated by signal ", "exited with signal ", "died with <signals."); found {
		return exitFromName(name)
	}
	if n := signalByName(text); n != 0 {
		return exitFromSignal(n)
	}
	text, _ = cutIntro(text, "command failed with ", "command ", "process ")
	text, _ = cutIntro(text, "exit status", "exited with code", "exit code", "exited with", "exit")
	n, err := strconv.Atoi(strings.Trim(text, " :=()"))
	if err != nil || n < -255 || n > 599 {
		return Spelled{Death: sandbox.Unknown}
	}
	return exitFromNumber(n)
}

// cutIntro returns what follows the first intro that the text begins with.
func cutIntro(text string, intros ...string) (rest string, found bool) {
	for _, intro := range intros {
		if rest, found := strings.CutPrefix(text, intro); found {
			return strings.TrimSpace(rest), true
		}
	}
	return text, false
}

func exitFromNumber(n int) Spelled {
	s := Spelled{Code: &n, Death: sandbox.Unknown}
	switch {
	case n < -1 && signalOfNumber(-n) != "":
		s.Signal = signalOfNumber(-n)
		s.Code = new(128 - n)
	case n > 128 && signalOfNumber(n-128) != "":
		s.Signal = signalOfNumber(n - 128)
	case n == 256-9:
		s.Signal = signalName(9)
	default:
		s.Death = sandbox.False
	}
	return s
}

func exitFromSignal(n int) Spelled {
	return Spelled{Code: new(128 + n), Signal: signalName(n), Death: sandbox.True}
}

// exitFromName parses what follows "signal:": the system's word, SIGKILL, or 9, optionally
// followed by one of the others.
func exitFromName(name string) Spelled {
	name, _ = cutIntro(name, "signal ")
	first := name
	if i := strings.IndexAny(name, " (:>"); i > 0 {
		first = name[:i]
	}
	for _, word := range []string{name, first} {
		if n := signalByName(word); n != 0 {
			return exitFromSignal(n)
		}
		if n, err := strconv.Atoi(word); err == nil && signalName(n) != "" {
			return exitFromSignal(n)
		}
	}
	return Spelled{Death: sandbox.Unknown}
}

// signal is a Linux signal that ends programs.
type signal struct {
	number int
	name   string
	word   string // what strsignal and Go print
}

// linuxSignals are the signals that a bare number may mean, see rareSignals. It has the numbers of x86 and arm, on which all providers run.
func linuxSignals() []signal {
	return []signal{
		{1, "SIGHUP", "hangup"},
		{2, "SIGINT", "interrupt"},
		{3, "SIGQUIT", "quit"},
		{4, "SIGILL", "illegal instruction"},
		{5, "SIGTRAP", "trace/breakpoint trap"},
		{6, "SIGABRT", "aborted"},
		{7, "SIGBUS", "bus error"},
		{8, "SIGFPE", "floating point exception"},
		{9, "SIGKILL", "killed"},
		{10, "SIGUSR1", "user defined signal 1"},
		{11, "SIGSEGV", "segmentation fault"},
		{12, "SIGUSR2", "user defined signal 2"},
		{13, "SIGPIPE", "broken pipe"},
		{14, "SIGALRM", "alarm clock"},
		{15, "SIGTERM", "terminated"},
		{24, "SIGXCPU", "cpu time limit exceeded"},
		{25, "SIGXFSZ", "file size limit exceeded"},
		{31, "SIGSYS", "bad system call"},
	}
}

// rareSignals end programs, too, but a program that exits with such a number is not taken
// for killed: only a wait status or a word shows them.
func rareSignals() []signal {
	return []signal{
		{16, "SIGSTKFLT", "stack fault"},
		{26, "SIGVTALRM", "virtual timer expired"},
		{27, "SIGPROF", "profiling timer expired"},
		{29, "SIGIO", "i/o possible"},
		{30, "SIGPWR", "power failure"},
	}
}

// Real-time signals have numbers only; SIGRTMIN is that of the C libraries.
const (
	firstRealTime = 32
	minRealTime   = 34
	lastRealTime  = 64
)

// signalName is the name of a signal that has ended a program; "" where none has that number.
func signalName(n int) string {
	for _, s := range append(linuxSignals(), rareSignals()...) {
		if s.number == n {
			return s.name
		}
	}
	switch {
	case n == minRealTime:
		return "SIGRTMIN"
	case n >= firstRealTime && n <= lastRealTime:
		return fmt.Sprintf("SIGRTMIN%+d", n-minRealTime)
	}
	return ""
}

// signalOfNumber is the name of the signal that a bare number may mean.
func signalOfNumber(n int) string {
	for _, s := range linuxSignals() {
		if s.number == n {
			return s.name
		}
	}
	return ""
}

// signalByName knows SIGKILL and the system's word, not the short KILL; 0 = no signal.
func signalByName(text string) int {
	for _, s := range append(linuxSignals(), rareSignals()...) {
		if text == strings.ToLower(s.name) || text == s.word {
			return s.number
		}
	}
	return 0
}
