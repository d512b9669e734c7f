package triage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// ExitFacts is what is known of an end. Every field may be missing.
type ExitFacts struct {
	Raw    string          // as the source spells it, see ParseExit; "" = not observed
	Died   sandbox.Verdict // by a signal, per wait status; "" or Unknown where only a number is known
	At     time.Time
	Source string // of Raw

	Words      []sandbox.ExitWord // the exit words of the provider that wrote Raw; may be empty
	Provider   string             // its name, for the evidence
	StreamLost bool               // the connection ended before it reported the exit
	// Ran is how long the program ran and Limit the time limit of the command or of the
	// session; zero = not known. Where a provider enforces its time limit with SIGKILL, as
	// the kernel does for memory, these two distinguish the cases.
	Ran, Limit time.Duration

	providerWord *sandbox.ExitWord // Raw, looked up in Words

	// What sbx itself recorded. The first field that is set decides the class.
	StopBy         string // who asked for the stop; "" = nobody
	TimedOut       bool   // a time limit of sbx ended it
	Watchdog       bool   // the memory watchdog of sbx ended it
	SupervisorLost bool   // its supervisor died with it
	Gone           bool   // the provider answered 404 or 410 while it ran

	OOMKills      *int64 // growth of the kernel's oom_kill counter of its group; nil = not observed
	CounterSource string // which counter
	KernelLog     string // the kernel's log line of its OOM kill; "" = not seen
	UsageSource   string // of peak and last sample; "" = CounterSource
	PeakBytes     *int64
	LimitBytes    *int64
	LastBytes     *int64 // the last sample of memory before the end
	LastAt        time.Time

	Lines []string // the last lines of its output, oldest first; untrusted text
}

// ClassifyExit says how a program ended and what that proves. A recorded stop or limit
// takes precedence over any number; OOM is certain only by the kernel's counter; a bare
// 137 or -9 is killed_unknown with an unknown cause. An exit word of a provider has no
// code.
func ClassifyExit(m *Matcher, f ExitFacts) sandbox.Exit {
	spelled := ParseExit(f.Raw)
	if said, known := FindExitWord(f.Words, f.Raw); known {
		f.providerWord, spelled = &said, Spelled{Death: sandbox.Unknown}
	}
	if f.Died == sandbox.True || f.Died == sandbox.False {
		spelled.Death = f.Died
	}
	e := sandbox.Exit{Code: spelled.Code, Raw: f.Raw, Signal: spelled.Signal, Confidence: sandbox.ConfidenceUnknown}
	if f.Raw != "" {
		e.Evidence = append(e.Evidence, textEvidence("exit", f.Raw, f.Source, f.At))
	}
	e.Evidence = append(e.Evidence, f.providerEvidence()...)
	e.Evidence = append(e.Evidence, f.counterEvidence()...)
	for _, rule := range []func(*Matcher, ExitFacts, Spelled, *sandbox.Exit) bool{classifyByRecord, killedByKernel, childKilled, loggedByKernel, ranOutOfTime, classifyByWord, classifyByCode} {
		if rule(m, f, spelled, &e) {
			break
		}
	}
	return e
}

// setClass sets class, cause and confidence.
func setClass(e *sandbox.Exit, class sandbox.Class, cause sandbox.Cause, confidence sandbox.Confidence) {
	e.Class, e.Cause, e.Confidence = class, cause, confidence
}

// classifyByRecord applies what sbx itself did or recorded; it precedes every number.
func classifyByRecord(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	note := func(what string) { e.Evidence = append(e.Evidence, textEvidence(what, "recorded", "sbx", f.At)) }
	switch {
	case f.StopBy != "":
		class := sandbox.ClassStopped
		if spelled.Signal == "SIGKILL" || spelled.Signal == "SIGTERM" {
			class = sandbox.ClassKilledByUs
		}
		setClass(e, class, sandbox.CauseStopped, sandbox.Certain)
		e.Evidence = append(e.Evidence, textEvidence("stop", f.StopBy, "sbx", f.At))
	case f.TimedOut:
		setClass(e, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain)
		note("time limit")
	case f.Watchdog:
		setClass(e, sandbox.ClassOOM, sandbox.CauseMemoryWatchdog, sandbox.Certain)
		note("memory watchdog")
	case f.SupervisorLost:
		setClass(e, sandbox.ClassInfra, sandbox.CauseSupervisorLost, sandbox.Certain)
		note("supervisor lost")
	case f.Gone:
		setClass(e, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown)
		note("gone while running")
	default:
		return false
	}
	return true
}

// classifyByCode is the table of exit codes, refined by the last log lines.
func classifyByCode(m *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	row := exitRowOf(spelled)
	setClass(e, row.class, row.cause, row.confidence)
	switch {
	case row.class == sandbox.ClassOK:
	case spelled.Signal == "SIGKILL":
		nearLimit(f, e)
	default:
		if row.class == sandbox.ClassUsage && slices.ContainsFunc(f.Lines, isGoCrash) {
			e.Class = sandbox.ClassCrash
		}
		addLogHints(m, f, e)
	}
	return true
}

// isGoCrash recognizes the first line of a Go program that crashes: its exit code is 2,
// the code of wrong usage.
func isGoCrash(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// exitRow is the meaning of an exit code by itself.
type exitRow struct {
	class      sandbox.Class
	cause      sandbox.Cause
	confidence sandbox.Confidence
}

// exitRowOf classifies a signal or code. HTTP status codes occur where an API returns
// them in place of an exit code.
func exitRowOf(s Spelled) exitRow {
	row := func(c sandbox.Class) exitRow { return exitRow{c, sandbox.CauseUnknown, sandbox.ConfidenceUnknown} }
	if s.Code == nil {
		return row(sandbox.ClassUnknown)
	}
	if s.Signal != "" {
		return exitRowOfSignal(s.Signal)
	}
	switch code := *s.Code; code {
	case 0:
		return exitRow{sandbox.ClassOK, sandbox.CauseNone, sandbox.Certain}
	case 2:
		return row(sandbox.ClassUsage)
	case 124, 408, 504:
		return exitRow{sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable}
	case 125:
		return row(sandbox.ClassLauncher)
	case 126, 127:
		return row(sandbox.ClassEnvironment)
	case -1, 255:
		return row(sandbox.ClassTransport)
	case 404, 410:
		return row(sandbox.ClassGone)
	case 429, 500, 502, 503:
		return row(sandbox.ClassInfra)
	default:
		if code > 0 && code < 128 {
			return row(sandbox.ClassAgentError)
		}
		return row(sandbox.ClassUnknown)
	}
}

// exitRowOfSignal classifies a death by signal. A SIGKILL that sbx did not record is unknown.
func exitRowOfSignal(name string) exitRow {
	switch name {
	case "SIGINT":
		return exitRow{sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Probable}
	case "SIGXCPU":
		return exitRow{sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable}
	case "SIGPIPE":
		return exitRow{sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown} // the reader of its output is gone
	case "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS", "SIGXFSZ", "SIGQUIT":
		return exitRow{sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}
	}
	return exitRow{sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}
}

// addLogHints adds what the last lines show: a full heap of a language runtime is
// probable, any other pattern is a hint. OOM is never concluded from a text.
func addLogHints(m *Matcher, f ExitFacts, e *sandbox.Exit) {
	if m == nil || e.Cause != sandbox.CauseUnknown {
		return
	}
	for _, line := range f.Lines {
		p, found := m.Match(line)
		switch {
		case !found, p.Cause == sandbox.CauseUnknown, p.Cause == sandbox.CauseNone, p.Cause == sandbox.CauseOOM:
			continue
		case p.Cause == sandbox.CauseRuntimeHeap:
			e.Cause, e.Confidence = p.Cause, sandbox.Probable
		case e.Cause != sandbox.CauseRuntimeHeap:
			e.Cause, e.Confidence = p.Cause, sandbox.Hint
		}
		e.Evidence = append(e.Evidence, textEvidence("log pattern "+p.ID, shortenLine(line), "log", f.At))
	}
}

// counterEvidence lists what was measured around the end.
func (f ExitFacts) counterEvidence() []sandbox.Evidence {
	var out []sandbox.Evidence
	add := func(what string, n *int64, source string, at time.Time) {
		if n != nil {
			out = append(out, textEvidence(what, strconv.FormatInt(*n, 10), source, at))
		}
	}
	add("oom_kill", f.OOMKills, f.CounterSource, f.At)
	usage := cmp.Or(f.UsageSource, f.CounterSource)
	add("memory peak bytes", f.PeakBytes, usage, f.At)
	add("memory limit bytes", f.LimitBytes, usage, f.At)
	add("last memory sample bytes", f.LastBytes, usage, f.LastAt)
	return out
}
