package triage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// ExitFacts is what is known of an ending. Everything may be missing.
type ExitFacts struct {
	Raw    string          // as the source spells it, see ParseExit; "" = nobody saw it
	Died   sandbox.Verdict // by a signal, as the wait status says; "" or Unknown where only a number is known
	At     time.Time
	Source string // where Raw comes from

	// Words are those of the provider that has written Raw, and Provider its name for the
	// evidence; none = Raw reads as everywhere.
	Words    []sandbox.ExitWord
	Provider string
	// StreamLost says that the connection ended before the end was told.
	StreamLost bool
	// Ran is how long the program ran and Limit the time that the provider was told
	// to give it (or its session has); zero = not known. Where the provider kills
	// for time as the kernel does for memory, they tell the two apart.
	Ran, Limit time.Duration

	said *sandbox.ExitWord // Raw, looked up

	// What the journal of sbx says. The first that is set decides the class.
	StopBy         string // who asked to stop it; "" = nobody
	TimedOut       bool   // a time limit of ours ended it
	Inactive       bool   // our inactivity limit ended it
	Watchdog       bool   // our memory watchdog ended it
	SupervisorLost bool   // its supervisor died with it
	Gone           bool   // the provider answered 404 or 410 while it ran

	OOMKills      *int64 // growth of the kernel's counter for its group; nil = not observed
	CounterSource string // which counter
	KernelLog     string // the kernel's own line about its kill for want of memory; "" = none was seen
	UsageSource   string // where peak and last sample come from; "" = CounterSource
	PeakBytes     *int64
	LimitBytes    *int64
	LastBytes     *int64 // the last sample of memory before the end
	LastAt        time.Time

	Lines []string // the last lines of its output, oldest first; untrusted text
}

// ClassifyExit says how a program ended and what that proves. A recorded stop
// or limit decides the class before any number; OOM is certain only by the
// kernel's counter; a bare 137 or -9 is killed_unknown with an unknown cause
// (DESIGN sections 3 and 7). What a provider says in words of its own has no code.
func ClassifyExit(m *Matcher, f ExitFacts) sandbox.Exit {
	spelled := ParseExit(f.Raw)
	if said, known := FindExitWord(f.Words, f.Raw); known {
		f.said, spelled = &said, Spelled{Death: sandbox.Unknown}
	}
	if f.Died == sandbox.True || f.Died == sandbox.False {
		spelled.Death = f.Died
	}
	e := sandbox.Exit{Code: spelled.Code, Raw: f.Raw, Signal: spelled.Signal, Confidence: sandbox.ConfidenceUnknown}
	if f.Raw != "" {
		e.Evidence = append(e.Evidence, words("exit", f.Raw, f.Source, f.At))
	}
	e.Evidence = append(e.Evidence, f.spoken()...)
	e.Evidence = append(e.Evidence, f.counters()...)
	for _, rule := range []func(*Matcher, ExitFacts, Spelled, *sandbox.Exit) bool{recorded, killedByKernel, childKilled, loggedByKernel, ranOut, bySpelling, byNumber} {
		if rule(m, f, spelled, &e) {
			break
		}
	}
	return e
}

// claim sets class, cause and confidence in one go.
func claim(e *sandbox.Exit, class sandbox.Class, cause sandbox.Cause, confidence sandbox.Confidence) {
	e.Class, e.Cause, e.Confidence = class, cause, confidence
}

// recorded is what sbx itself did or saw; it outranks every number.
func recorded(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	note := func(what string) { e.Evidence = append(e.Evidence, words(what, "recorded", "sbx", f.At)) }
	switch {
	case f.StopBy != "":
		class := sandbox.ClassStopped
		if spelled.Signal == "SIGKILL" || spelled.Signal == "SIGTERM" {
			class = sandbox.ClassKilledByUs
		}
		claim(e, class, sandbox.CauseStopped, sandbox.Certain)
		e.Evidence = append(e.Evidence, words("stop", f.StopBy, "sbx", f.At))
	case f.TimedOut:
		claim(e, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain)
		note("time limit")
	case f.Inactive:
		claim(e, sandbox.ClassTimeout, sandbox.CauseInactivity, sandbox.Certain)
		note("inactivity limit")
	case f.Watchdog:
		claim(e, sandbox.ClassOOM, sandbox.CauseMemoryWatchdog, sandbox.Certain)
		note("memory watchdog")
	case f.SupervisorLost:
		claim(e, sandbox.ClassInfra, sandbox.CauseSupervisorLost, sandbox.Certain)
		note("supervisor lost")
	case f.Gone:
		claim(e, sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown)
		note("gone while running")
	default:
		return false
	}
	return true
}

// byNumber is the table of exit codes, with what the last lines add to it.
func byNumber(m *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	row := classOf(spelled)
	claim(e, row.class, row.cause, row.confidence)
	switch {
	case row.class == sandbox.ClassOK:
	case spelled.Signal == "SIGKILL":
		nearLimit(f, e)
	default:
		if row.class == sandbox.ClassUsage && slices.ContainsFunc(f.Lines, goDeath) {
			e.Class = sandbox.ClassCrash
		}
		fromLines(m, f, e)
	}
	return true
}

// goDeath knows the first line of a Go program that dies: it leaves with 2, the
// code of wrong usage.
func goDeath(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// exitRow is what a code means by itself.
type exitRow struct {
	class      sandbox.Class
	cause      sandbox.Cause
	confidence sandbox.Confidence
}

// classOf reads signal or code. Codes of HTTP stand for an exit where an API
// answers with them instead of one.
func classOf(s Spelled) exitRow {
	row := func(c sandbox.Class) exitRow { return exitRow{c, sandbox.CauseUnknown, sandbox.ConfidenceUnknown} }
	if s.Code == nil {
		return row(sandbox.ClassUnknown)
	}
	if s.Signal != "" {
		return ofSignal(s.Signal)
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

// ofSignal sorts deaths by signal. A kill nobody of us recorded stays unknown.
func ofSignal(name string) exitRow {
	switch name {
	case "SIGINT":
		return exitRow{sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Probable}
	case "SIGXCPU":
		return exitRow{sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable}
	case "SIGPIPE":
		return exitRow{sandbox.ClassInfra, sandbox.CauseUnknown, sandbox.ConfidenceUnknown} // who read its output went away
	case "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS", "SIGXFSZ", "SIGQUIT":
		return exitRow{sandbox.ClassCrash, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}
	}
	return exitRow{sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}
}

// fromLines adds what the last lines say: a full heap of a runtime is probable,
// any other pattern is a hint. OOM is never taken from a text.
func fromLines(m *Matcher, f ExitFacts, e *sandbox.Exit) {
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
		e.Evidence = append(e.Evidence, words("log pattern "+p.ID, sample(line), "log", f.At))
	}
}

// counters writes what was measured around the end.
func (f ExitFacts) counters() []sandbox.Evidence {
	var out []sandbox.Evidence
	add := func(what string, n *int64, source string, at time.Time) {
		if n != nil {
			out = append(out, words(what, strconv.FormatInt(*n, 10), source, at))
		}
	}
	add("oom_kill", f.OOMKills, f.CounterSource, f.At)
	usage := cmp.Or(f.UsageSource, f.CounterSource)
	add("memory peak bytes", f.PeakBytes, usage, f.At)
	add("memory limit bytes", f.LimitBytes, usage, f.At)
	add("last memory sample bytes", f.LastBytes, usage, f.LastAt)
	return out
}
