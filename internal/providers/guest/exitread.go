package guest

import (
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// exitFacts is what ReadExit printed.
type exitFacts struct {
	state  string
	code   string
	ended  time.Time
	signal int // that Kill sent last
	killed time.Time
	file   string // the kernel's
	before map[string]int64
	after  map[string]int64
	lines  []string
}

// ParseExit reads what ReadExit printed: nil while the program runs.
//
// The code is what a shell saw, so whether 137 was a death or the program's own
// word stays open. A kill by Kill is a recorded fact. The cause is out of memory
// only where the kernel's counter grew during the run; it counts the whole
// sandbox, which the evidence says. Where what watched the program is gone
// together with it, nobody saw the end: no code, class unknown.
// fault.KindUnavailable around ErrOutput for what no such text prints.
func ParseExit(text []byte) (*sandbox.Exit, error) {
	x := exitFacts{before: map[string]int64{}, after: map[string]int64{}}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		x.read(key, value)
	}
	switch x.state {
	case stateRunning:
		return nil, nil //nolint:nilnil // it runs: that is an answer, and no exit
	case stateEnded, stateLost:
		e := x.judge()
		return &e, nil
	}
	return nil, refuse("no state of the run")
}

func (x *exitFacts) read(key, value string) {
	switch key {
	case "state":
		x.state = value
	case "code":
		x.code = strings.TrimSpace(value)
	case "ended":
		x.ended = unix(value)
	case "killed":
		signal, at, _ := strings.Cut(value, " ")
		x.signal, _ = strconv.Atoi(signal)
		x.killed = unix(at)
	case "before":
		x.count(x.before, value)
	case "after":
		x.count(x.after, value)
	case "line":
		x.lines = append(x.lines, value)
	}
}

// count reads "file NAME" and "oom_kill N"; "max" where there is no limit is no
// number.
func (x *exitFacts) count(into map[string]int64, value string) {
	name, n, _ := strings.Cut(value, " ")
	if name == "file" {
		x.file = n
		return
	}
	if v, err := strconv.ParseInt(n, 10, 64); err == nil && v >= 0 && v < unlimited {
		into[name] = v
	}
}

func unix(text string) time.Time {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

func (x *exitFacts) judge() sandbox.Exit {
	f := triage.ExitFacts{Raw: x.code, Source: Source, At: x.ended, Lines: x.lines, CounterSource: x.file}
	if x.ours() {
		f.StopBy = "sbx"
	}
	f.OOMKills = x.grown()
	f.PeakBytes, f.LimitBytes = known(x.after, "peak"), known(x.after, "max")
	e := triage.ClassifyExit(triage.NewMatcher(), f)
	add := func(what, value, source string, at time.Time) {
		e.Evidence = append(e.Evidence, sandbox.Evidence{What: what, Value: value, Source: source, At: at})
	}
	switch {
	case x.state == stateLost:
		add("exit", "nobody saw it: what watched the program is gone", Source, x.ended)
	case x.code == "":
		add("exit", "it ended, and its code could not be written", Source, x.ended)
	}
	if f.OOMKills != nil && *f.OOMKills > 0 {
		add("oom_kill counts", "the whole sandbox, not this program alone", x.file, x.ended)
	}
	if x.signal != 0 {
		add("signal sent by sbx", strconv.Itoa(x.signal), Source, x.killed)
	}
	return e
}

// ours says that the program ended by what Kill sent: by that very signal, or by
// itself after a polite one.
func (x *exitFacts) ours() bool {
	if x.signal == 0 {
		return false
	}
	spelled := triage.ParseExit(x.code)
	if spelled.Signal == "" {
		return x.signal != 9 && spelled.Code != nil
	}
	return *spelled.Code == 128+x.signal
}

// grown is by how much the counter moved during the run; nil where it was not
// read twice. It starts anew with the machine, and then proves nothing.
func (x *exitFacts) grown() *int64 {
	before, after := known(x.before, "oom_kill"), known(x.after, "oom_kill")
	if before == nil || after == nil || *after < *before {
		return nil
	}
	return new(*after - *before)
}

func known(counts map[string]int64, name string) *int64 {
	if v, ok := counts[name]; ok {
		return &v
	}
	return nil
}
