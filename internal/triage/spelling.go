package triage

import (
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

// Spelled is an exit as its source writes it, brought into one form.
type Spelled struct {
	Code   *int            // 128+n for signal n; nil when the text holds no exit
	Signal string          // "SIGKILL"; empty without one
	Death  sandbox.Verdict // died by that signal: True where the spelling itself says so, Unknown for a bare number
}

// ParseExit reads 137, -9, "exit status 3", "exit code: -9", "signal: killed
// (core dumped)", "signal: 9 (SIGKILL)", "killed by signal 9", SIGKILL. Minus n and
// 128+n are signal n; 247 is minus 9 cut to a byte, as a program that passes -9 on
// shows it. What is no exit gives the zero Code and an Unknown death.
func ParseExit(raw string) Spelled {
	text := strings.ToLower(strings.TrimSpace(raw))
	text, _, _ = strings.Cut(text, " and error")
	text = strings.TrimSpace(strings.TrimSuffix(text, "(core dumped)"))
	if name, found := behind(text, "signal:", "signal ", "killed by signal ", "terminated by signal ", "exited with signal ", "died with <signals."); found {
		return fromName(name)
	}
	if n := signalByName(text); n != 0 {
		return fromSignal(n)
	}
	text, _ = behind(text, "command failed with ", "command ", "process ")
	text, _ = behind(text, "exit status", "exited with code", "exit code", "exited with", "exit")
	n, err := strconv.Atoi(strings.Trim(text, " :=()"))
	if err != nil || n < -255 || n > 599 {
		return Spelled{Death: sandbox.Unknown}
	}
	return fromNumber(n)
}

// behind gives what follows the first introduction that a text begins with.
func behind(text string, intros ...string) (rest string, found bool) {
	for _, intro := range intros {
		if rest, found := strings.CutPrefix(text, intro); found {
			return strings.TrimSpace(rest), true
		}
	}
	return text, false
}

func fromNumber(n int) Spelled {
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

func fromSignal(n int) Spelled {
	return Spelled{Code: new(128 + n), Signal: signalName(n), Death: sandbox.True}
}

// fromName reads what follows "signal:": the system's word, SIGKILL, or 9, with or
// without one of the others behind it.
func fromName(name string) Spelled {
	first := name
	if i := strings.IndexAny(name, " (:>"); i > 0 {
		first = name[:i]
	}
	for _, word := range []string{name, first} {
		if n := signalByName(word); n != 0 {
			return fromSignal(n)
		}
		if n, err := strconv.Atoi(word); err == nil && signalName(n) != "" {
			return fromSignal(n)
		}
	}
	return Spelled{Death: sandbox.Unknown}
}

// signal is one signal of Linux that ends programs.
type signal struct {
	number int
	name   string
	word   string // what strsignal and Go print
}

// signals lists by the numbers of x86 and arm, which all providers run on.
func signals() []signal {
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
	for _, s := range signals() {
		if s.number == n {
			return s.name
		}
	}
	return ""
}

// signalByName knows SIGKILL, kill's short KILL only with its prefix, and the
// system's word; 0 for any other text.
func signalByName(text string) int {
	for _, s := range signals() {
		if text == strings.ToLower(s.name) || text == s.word {
			return s.number
		}
	}
	return 0
}
