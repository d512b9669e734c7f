package triage

import (
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

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
	case n < -1 && signalName(-n) != "":
		s.Signal = signalName(-n)
		s.Code = new(128 - n)
	case n > 128 && signalName(n-128) != "":
		s.Signal = signalName(n - 128)
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

// linuxSignals has the numbers of x86 and arm, on which all providers run.
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

func signalName(n int) string {
	for _, s := range linuxSignals() {
		if s.number == n {
			return s.name
		}
	}
	return ""
}

// signalByName knows SIGKILL and the system's word, not the short KILL; 0 = no signal.
func signalByName(text string) int {
	for _, s := range linuxSignals() {
		if text == strings.ToLower(s.name) || text == s.word {
			return s.number
		}
	}
	return 0
}
