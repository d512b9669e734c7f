package guest

import (
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Source names these files as the source of lines and exits.
const Source = "sbx-file"

// The states of a run, as the scripts print them.
const (
	stateRunning = "running"
	stateEnded   = "ended"
	stateLost    = "lost"
)

// ReadExitScript is a script that prints the state and the exit of a run, for ParseExit.
// Without such a run it exits with ExitMissing.
func ReadExitScript(tag string) string {
	return enterRunDir(tag) + sharedFunctions + counterFunction + exitText
}

// exitText prints the program's own lines last and each behind a key, so that they cannot
// be taken for facts. Where the kernel's counters of the end were not written, it prints
// the current ones.
const exitText = `[ -d "$d" ] || exit 44
s=$(state "$d")
echo "state $s"
[ -e "$d/begin" ] && cat "$d/begin"
[ -e "$d/killed" ] && echo "killed $(cat "$d/killed")"
if [ $s = ended ]; then cat "$d/code"; else counters | sed 's/^/after /'; fi
for n in out err; do
  last=-1
  for f in "$d/$n".*; do k=${f##*.}; case $k in *[!0-9]*) ;; *) [ $k -lt $last ] || last=$k;; esac; done
  [ -e "$d/$n.$last" ] && tail -c 4000 "$d/$n.$last" | tail -n 20 | sed 's/^/line /' && echo
done
exit 0
`

type exitFacts struct {
	state  string
	code   string
	failed bool // the program was not started, and code is that of the runner
	ended  time.Time
	signal int // the last one that KillScript sent
	killed time.Time
	file   string // of the kernel's counters
	before map[string]int64
	after  map[string]int64
	lines  []string
}

// ParseExit reads the output of ReadExitScript: nil while the program runs.
//
// The code is the one that a shell saw, so 137 may be a death by signal or the program's
// own exit code. It is the runner's only where the program was not started. A kill by KillScript is recorded. The cause is out of memory only where the
// kernel's counter grew during the run, and never more than probable: that counter is of the
// whole sandbox and the whole run, which the evidence says. Where the process that watched the program is gone together with it, the
// exit has no code and class unknown. fault.KindUnavailable around ErrOutput for any other
// output.
func ParseExit(text []byte) (*sandbox.Exit, error) {
	x := exitFacts{before: map[string]int64{}, after: map[string]int64{}}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		x.parseField(key, value)
	}
	switch x.state {
	case stateRunning:
		return nil, nil //nolint:nilnil // it runs: there is no exit yet
	case stateEnded, stateLost:
		e := x.toExit()
		return &e, nil
	}
	return nil, outputFault("no state of the run")
}

func (x *exitFacts) parseField(key, value string) {
	switch key {
	case "state":
		x.state = value
	case "code":
		x.code = strings.TrimSpace(value)
	case "unstarted":
		x.failed = true
	case "ended":
		x.ended = parseUnixTime(value)
	case "killed":
		signal, at, _ := strings.Cut(value, " ")
		x.signal, _ = strconv.Atoi(signal)
		x.killed = parseUnixTime(at)
	case "before":
		x.parseCounter(x.before, value)
	case "after":
		x.parseCounter(x.after, value)
	case "line":
		x.lines = append(x.lines, value)
	}
}

// parseCounter reads "file NAME" and "oom_kill N". "max", which stands for no limit, is ignored.
func (x *exitFacts) parseCounter(into map[string]int64, value string) {
	name, n, _ := strings.Cut(value, " ")
	if name == "file" {
		x.file = n
		return
	}
	if v, err := strconv.ParseInt(n, 10, 64); err == nil && v >= 0 && v < unlimited {
		into[name] = v
	}
}

func parseUnixTime(text string) time.Time {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

func (x *exitFacts) toExit() sandbox.Exit {
	f := triage.ExitFacts{Raw: x.code, NotStarted: x.failed, Source: Source, At: x.ended, Lines: x.lines, CounterSource: x.file}
	if x.killedBySbx() {
		f.StopBy = "sbx"
	}
	f.OOMKills = x.oomKillGrowth()
	f.PeakBytes, f.LimitBytes = counterValue(x.after, "peak"), counterValue(x.after, "max")
	e := triage.ClassifyExit(triage.NewMatcher(), f)
	add := func(what, value, source string, at time.Time) {
		e.Evidence = append(e.Evidence, sandbox.Evidence{What: what, Value: value, Source: source, At: at})
	}
	switch {
	case x.state == stateLost:
		add("exit", "unknown: the process that watched the program died", Source, x.ended)
	case x.code == "":
		add("exit", "it ended, and its exit code could not be stored", Source, x.ended)
	}
	if f.OOMKills != nil && *f.OOMKills > 0 {
		add("oom_kill counts", "the whole sandbox, not only this program", x.file, x.ended)
	}
	if x.signal != 0 {
		add("signal sent by sbx", strconv.Itoa(x.signal), Source, x.killed)
	}
	return e
}

// killedBySbx says that the program ended because of the signal that KillScript sent: by that signal,
// or with a code of its own after another signal than SIGKILL.
func (x *exitFacts) killedBySbx() bool {
	if x.signal == 0 {
		return false
	}
	spelled := triage.ParseExit(x.code)
	if spelled.Signal == "" {
		return x.signal != 9 && spelled.Code != nil
	}
	return *spelled.Code == 128+x.signal
}

// oomKillGrowth is the growth of the counter during the run; nil where it was not read twice or
// was reset by a restart of the machine.
func (x *exitFacts) oomKillGrowth() *int64 {
	before, after := counterValue(x.before, "oom_kill"), counterValue(x.after, "oom_kill")
	if before == nil || after == nil || *after < *before {
		return nil
	}
	return new(*after - *before)
}

func counterValue(counts map[string]int64, name string) *int64 {
	if v, ok := counts[name]; ok {
		return &v
	}
	return nil
}
