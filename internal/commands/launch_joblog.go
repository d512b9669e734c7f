package commands

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/output"
	"sbx/internal/task"
)

// joblogHead is GNU parallel's, and what it loses: each attempt has a line of its own.
const joblogHead = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tAttempt\tClass\tSandbox\tTask\n"

// openJoblog refuses a file that cannot be written, before hours of work are.
func (l *launching) openJoblog() error {
	if l.o.joblog == "" {
		return nil
	}
	f, err := l.joblogFile()
	if err != nil {
		return fault.Usage("--joblog: %w", err).WithHint("name a file that can be written")
	}
	return f.Close()
}

// modeJoblog lets others read: it is a log.
const modeJoblog = 0o644

func (l *launching) joblogFile() (hostfile.Appended, error) {
	return hostfile.Append(l.d.path(l.o.joblog), modeJoblog)
}

// joblog adds a line for each attempt of a task. Its Seq is the task's place in a file;
// at none it is the attempt's number. That it cannot be written changes nothing of
// what the task came to.
func (l *launching) joblog(t task.Task, seq int) {
	if l.o.joblog == "" {
		return
	}
	if err := l.addLines(t, seq); err != nil {
		l.p.Warn("--joblog: the lines of task " + t.ID + " could not be added: " + err.Error())
	}
}

func (l *launching) addLines(t task.Task, seq int) error {
	f, err := l.joblogFile()
	if err != nil {
		return err
	}
	text := joblogLines(t, seq)
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		text = joblogHead + text
	}
	err = f.Add(text) // one write: lines of several processes do not mix
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func joblogLines(t task.Task, seq int) string {
	var b strings.Builder
	for _, a := range t.Attempts {
		code, signal, class := "-1", "0", ""
		if a.Exit != nil {
			class = string(a.Exit.Class)
			if a.Exit.Code != nil {
				code = strconv.Itoa(*a.Exit.Code)
			}
			if n := signalNumber(a); n > 0 {
				code, signal = "0", strconv.Itoa(n)
			}
		}
		started := a.StartedAt
		if started.IsZero() {
			started = a.IntentAt
		}
		length, _ := attemptLength(a)
		ref := ""
		if a.Sandbox != "" {
			ref = a.Ref().String()
		}
		command := output.EscapeLine(strings.ReplaceAll(strings.Join(t.Spec.Command, " "), "\t", " "))
		fmt.Fprintf(&b, "%d\t%s\t%.3f\t%.3f\t0\t0\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", cmp.Or(seq, a.N), a.Provider, float64(started.UnixMilli())/1000,
			length.Seconds(), code, signal, command, a.N, class, ref, t.ID)
	}
	return b.String()
}

// signalNumber is the signal that a program died of, as 128+n tells it; 0 = none.
func signalNumber(a task.Attempt) int {
	if a.Exit.Signal == "" || a.Exit.Code == nil || *a.Exit.Code <= 128 {
		return 0
	}
	return *a.Exit.Code - 128
}
