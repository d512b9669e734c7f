package triage

import (
	"fmt"
	"slices"
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
	NotStarted bool               // the launcher gave up before the program ran; Raw is the launcher's code
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

	OOMKills      *int64 // growth of the kernel's oom_kill counter of its group over its life; nil = not observed
	CounterSource string // which counter
	TasksRefused  *int64 // how often its limit of processes has refused one more; nil = not observed
	TaskLimit     *int64 // that limit

	KernelLog  string          // the kernel's log line of its OOM kill; "" = not seen
	NotLogged  bool            // the kernel's log is complete since its start and has no such line
	LastKillAt time.Time       // the last OOM kill in its group, by that log or by the growth of the counter; zero = not known
	OwnLimit   sandbox.Verdict // whether that kill was for the limit of its own group, by that log

	UsageSource string // of peak and last sample; "" = CounterSource
	PeakBytes   *int64
	LimitBytes  *int64
	LastBytes   *int64 // the last sample of memory before the end
	LastAt      time.Time

	Lines []string // the last lines of its output, oldest first; untrusted text
}

// ClassifyExit says how a program ended and what that proves. A recorded stop or limit
// takes precedence over any number; OOM is certain only where the kernel's counter moved
// and its log names the program and the limit of its group; a bare 137 or -9 is
// killed_unknown with an unknown cause. An exit word of a provider has no code.
func ClassifyExit(m *Matcher, f ExitFacts) sandbox.Exit {
	spelled := ParseExit(f.Raw)
	if word, known := FindExitWord(f.Words, f.Raw); known {
		f.providerWord, spelled = &word, Spelled{Death: sandbox.Unknown}
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
	for _, rule := range []func(*Matcher, ExitFacts, Spelled, *sandbox.Exit) bool{classifyByRecord, neverStarted, killedByKernel, childKilled, reachedTaskLimit, loggedByKernel, ranOutOfTime, classifyByWord, classifyByCode} {
		if rule(m, f, spelled, &e) {
			break
		}
	}
	return e
}

func setClass(e *sandbox.Exit, class sandbox.Class, cause sandbox.Cause, confidence sandbox.Confidence) {
	e.Class, e.Cause, e.Confidence = class, cause, confidence
}

// classifyByRecord applies what sbx itself did or recorded; it precedes every number.
func classifyByRecord(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if f.StopBy != "" {
		class := sandbox.ClassStopped
		if spelled.Signal == "SIGKILL" || spelled.Signal == "SIGTERM" {
			class = sandbox.ClassKilledByUs
		}
		setClass(e, class, sandbox.CauseStopped, sandbox.Certain)
		e.Evidence = append(e.Evidence, textEvidence("stop", f.StopBy, "sbx", f.At))
		return true
	}
	for _, r := range []struct {
		recorded bool
		what     string
		row      exitRow
	}{
		{f.TimedOut, "time limit", exitRow{sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Certain}},
		{f.Watchdog, "memory watchdog", exitRow{sandbox.ClassOOM, sandbox.CauseMemoryWatchdog, sandbox.Certain}},
		{f.SupervisorLost, "supervisor lost", exitRow{sandbox.ClassInfra, sandbox.CauseSupervisorLost, sandbox.Certain}},
		{f.Gone, "vanished while running", exitRow{sandbox.ClassGone, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}},
	} {
		if r.recorded {
			setClass(e, r.row.class, r.row.cause, r.row.confidence)
			e.Evidence = append(e.Evidence, textEvidence(r.what, "recorded", "sbx", f.At))
			return true
		}
	}
	return false
}

// neverStarted matches the launcher's own code, which shows that the program did not run.
// 126 and 127 say more: see exitRowOf.
func neverStarted(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if !f.NotStarted || exitRowOf(spelled).class == sandbox.ClassEnvironment {
		return false
	}
	setClass(e, sandbox.ClassLauncher, sandbox.CauseUnknown, sandbox.ConfidenceUnknown)
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

// exitRowOf classifies a signal or code. A code from 1 to 255 is the program's own, whatever it
// means elsewhere: no launcher and no connection took part in it. Other numbers are HTTP
// status codes, where an API returns them in place of an exit code.
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
	case 126, 127:
		return row(sandbox.ClassEnvironment)
	case 408, 504:
		return exitRow{sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable}
	case -1:
		return row(sandbox.ClassTransport)
	case 404, 410:
		return row(sandbox.ClassGone)
	case 429, 500, 502, 503:
		return row(sandbox.ClassInfra)
	default:
		if code > 0 && code <= 255 {
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
		return exitRow{sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown} // a reader in the sandbox stopped early
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

// FindExitWord looks up a provider's own word for an exit; letter case and a leading
// "HTTP" are ignored. Signals, exit codes and "exit code -9" are the same everywhere and
// not in these lists, see ParseExit.
func FindExitWord(words []sandbox.ExitWord, raw string) (sandbox.ExitWord, bool) {
	word := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(raw)), "http ")
	i := slices.IndexFunc(words, func(w sandbox.ExitWord) bool { return w.Raw == word })
	if i < 0 {
		return sandbox.ExitWord{}, false
	}
	return words[i], true
}

// ranOutOfTime matches a kill, or the end of a session, at the time limit. Where the OOM
// counter did not move, the limit is the probable cause.
func ranOutOfTime(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if f.Limit <= 0 || f.Ran <= 0 || !f.endsByLimit(spelled) {
		return false
	}
	e.Evidence = append(e.Evidence, textEvidence("ran", fmt.Sprintf("%s of its limit of %s", f.Ran, f.Limit), f.Source, f.At))
	if f.Ran < f.Limit-limitSlack {
		return false
	}
	setClass(e, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable)
	return true
}

// endsByLimit reports whether a provider's time limit may show up like this.
func (f ExitFacts) endsByLimit(spelled Spelled) bool {
	if f.providerWord == nil {
		return spelled.Signal == "SIGKILL" || spelled.Signal == "SIGTERM"
	}
	switch f.providerWord.Class {
	case sandbox.ClassKilledUnknown, sandbox.ClassStopped, sandbox.ClassGone, sandbox.ClassInfra:
		return true
	default:
		return false
	}
}

// classifyByWord applies the provider's own exit word, or a lost stream.
func classifyByWord(_ *Matcher, f ExitFacts, _ Spelled, e *sandbox.Exit) bool {
	switch {
	case f.providerWord != nil:
		setClass(e, f.providerWord.Class, f.providerWord.Cause, f.providerWord.Confidence)
		if f.providerWord.Class == sandbox.ClassKilledUnknown {
			nearLimit(f, e)
		}
	case f.StreamLost && f.Raw == "":
		setClass(e, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown)
	default:
		return false
	}
	return true
}

// exitClass is the class of an exit by the provider's word or by its number.
func (f ExitFacts) exitClass(spelled Spelled) sandbox.Class {
	switch {
	case f.providerWord != nil:
		return f.providerWord.Class
	case f.StreamLost && f.Raw == "":
		return sandbox.ClassTransport
	}
	return exitRowOf(spelled).class
}

// providerEvidence explains the provider's word and records that the stream was lost.
func (f ExitFacts) providerEvidence() []sandbox.Evidence {
	var out []sandbox.Evidence
	if f.providerWord != nil {
		out = append(out, textEvidence("meaning", f.providerWord.Says, f.Provider, f.At))
	}
	if f.StreamLost {
		out = append(out, textEvidence("stream", "was lost before the end was reported", f.Source, f.At))
	}
	return out
}
