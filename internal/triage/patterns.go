package triage

import "sbx/internal/sandbox"

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
	Row      string        // requirement id, or "facts" for what agents and runtimes print
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
			ID: "sigkill", Row: "S0-2", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say:      "the agent process was killed with SIGKILL; that alone does not say by whom",
			literals: []string{"exit code -9", "exit code: -9", "signal: killed", "signal sigkill"},
		}, {
			ID: "kernel_oom", Row: "S3-3", Cause: sandbox.CauseOOM, Severity: Critical, Resource: true,
			Say:      "the kernel's message of an OOM kill; only its counter proves whose",
			literals: []string{"out of memory: kill process", "out of memory: killed process", "memory cgroup out of memory", "invoked oom-killer", "oom-kill:constraint"},
		}, {
			ID: "terminated_process", Row: "facts", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say:      "the session's process is dead: start a new session, do not reuse this one",
			literals: []string{"cannot write to terminated process"},
		},
	}
}

func memoryPatterns() []Pattern {
	heap := func(id, say string, literals ...string) Pattern {
		return Pattern{ID: id, Row: "facts", Cause: sandbox.CauseRuntimeHeap, Severity: Critical, Say: say, Resource: true, literals: literals}
	}
	return []Pattern{
		heap("node_heap", "Node reached its own heap limit, which is not the sandbox's",
			"javascript heap out of memory", "reached heap limit", "ineffective mark-compacts near heap limit",
			"array buffer allocation failed", "fatal process out of memory", "fatal process oom"),
		heap("go_heap", "the Go runtime got no memory",
			"runtime: out of memory", "runtime: cannot map pages", "failed to reserve page summary", "runtime: cannot allocate memory"),
		heap("python_heap", "Python got no memory", "memoryerror", "unable to allocate"),
		heap("java_heap", "the Java heap is full", "outofmemoryerror", "java heap space", "gc overhead limit exceeded"),
		heap("enomem", "the system refused memory", "enomem", "cannot allocate memory", "std::bad_alloc", "memory allocation of", "virtual memory exhausted"),
		{
			ID: "out_of_memory", Row: "R40", Cause: sandbox.CauseLeak, Severity: Critical, Resource: true,
			Say: "out of memory: a leak, or a limit that is too small", literals: []string{"out of memory"},
		},
		{
			ID: "resource_warning", Row: "R13", Cause: sandbox.CauseUnknown, Severity: Warning, Resource: true,
			Say: "memory or another resource runs short",
			literals: []string{
				"high memory usage", "memory usage is high", "memory warning", "low memory", "memory pressure", "memory leak detected",
				"maxlistenersexceededwarning", "no space left on device", "enospc", "too many open files", "emfile",
				"resource temporarily unavailable", "disk quota exceeded", "resource warning", "resource exhausted", "resource_exhausted",
			},
		},
	}
}

func loopPatterns() []Pattern {
	return []Pattern{
		{
			ID: "recursion", Row: "R39", Cause: sandbox.CauseBusyLoop, Severity: Critical,
			Say:      "infinite recursion",
			literals: []string{"maximum call stack exceeded", "maximum call stack size exceeded", "maximum recursion depth exceeded", "stack overflow", "goroutine stack exceeds"},
		}, {
			ID: "iterations", Row: "R65", Cause: sandbox.CauseBusyLoop, Severity: Critical,
			Say:      "the agent's iteration limit stopped a loop",
			literals: []string{"maximum iterations exceeded", "max iterations exceeded", "possible infinite loop"},
		},
	}
}

func waitPatterns() []Pattern {
	return []Pattern{
		{
			ID: "agent_timeout", Row: "R66", Cause: sandbox.CauseTimeout, Severity: Critical,
			Say: "the agent ran into its own time limit", literals: []string{"agent execution timeout"},
		}, {
			ID: "operation_limit", Row: "R130", Cause: sandbox.CauseTimeout, Severity: Critical,
			Say: "an operation ran into its time limit", literals: []string{"sandbox operation timeout", "sandbox timeout", "sandbox timed out"},
		}, {
			ID: "inactivity_timeout", Row: "S1-13", Cause: sandbox.CauseInactivity, Severity: Critical,
			Say: "nothing happened for too long", literals: []string{"inactivity timeout"},
		}, {
			ID: "request_timeout", Row: "R76", Cause: sandbox.CauseHungIO, Severity: Warning,
			Say: "a request got no answer in time", literals: []string{"request timed out", "request timeout"},
		}, {
			ID: "operation_timed_out", Row: "R38", Cause: sandbox.CauseHungIO, Severity: Warning,
			Say:      "an external service hangs",
			literals: []string{"operation timed out", "connection timed out", "read timed out", "i/o timeout", "etimedout", "context deadline exceeded", "timeouterror", "gateway timeout"},
		}, {
			ID: "network", Row: "facts", Cause: sandbox.CauseUnknown, Severity: Warning,
			Say:      "the network or a peer fails",
			literals: []string{"econnreset", "econnrefused", "enotfound", "eai_again", "socket hang up", "connection refused", "connection reset by peer", "network is unreachable", "no such host"},
		},
	}
}

func accessPatterns() []Pattern {
	return []Pattern{
		{
			ID: "rate_limit", Row: "facts", Cause: sandbox.CauseUnknown, Severity: Warning,
			Say: "a service throttles or is overloaded: wait, then retry",
			literals: []string{
				"rate limit", "rate limited", "rate limits", "rate_limit", "rate_limit_error", "ratelimiterror", "too many requests",
				"overloaded_error", "overloaded", "http 429", "status 429", "status code 429", "error 429",
			},
		}, {
			ID: "auth", Row: "facts", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say: "credentials are missing, wrong or expired: a retry cannot help",
			literals: []string{
				"unauthorized", "invalid api key", "invalid_api_key", "invalid x-api-key", "authentication_error", "authentication failed",
				"token expired", "token has expired", "permission_error", "403 forbidden", "not logged in",
			},
		}, {
			ID: "credit", Row: "facts", Cause: sandbox.CauseUnknown, Severity: Critical,
			Say: "the account has no credit or quota left", literals: []string{"credit balance is too low", "insufficient_quota", "quota exceeded", "billing_error"},
		},
	}
}

func fleetPatterns() []Pattern {
	return []Pattern{
		{
			ID: "resource_limit", Row: "R107", Cause: sandbox.CauseUnknown, Severity: Critical, Resource: true,
			Say: "the provider's resources are used up", literals: []string{"resource limit exceeded"},
		}, {
			ID: "sandbox_limit", Row: "R111", Cause: sandbox.CauseUnknown, Severity: Critical, Resource: true,
			Say: "no more sandboxes are admitted", literals: []string{"maximum sandbox limit reached"},
		}, {
			ID: "sandbox_not_found", Row: "R96", Cause: sandbox.CauseOrphan, Severity: Warning,
			Say: "records and reality differ", literals: []string{"sandbox not found"},
		}, {
			ID: "orphaned", Row: "R8", Cause: sandbox.CauseOrphan, Severity: Warning,
			Say: "a sandbox has lost its owner", literals: []string{"orphaned sandbox", "orphaned sandboxes", "orphan sandbox"},
		}, {
			ID: "unhealthy", Row: "R137", Cause: sandbox.CauseUnknown, Severity: Warning,
			Say: "a health check failed", literals: []string{"unhealthy sandbox detected"},
		},
	}
}

// cleanupPatterns knows both spellings of the cleanup log.
func cleanupPatterns() []Pattern {
	line := func(id string, severity Severity, say string, literals ...string) Pattern {
		return Pattern{ID: id, Row: "R89", Cause: sandbox.CauseNone, Severity: severity, Say: say, literals: literals}
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
