package guest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Source is how lines and exits that come from these files name themselves.
const Source = "sbx-file"

// ReadExit is a shell text that prints how a run stands; ParseExit reads it.
// Without such a run it exits with ExitMissing.
func ReadExit(tag string) string { return enter(tag) + exitText }

const exitText = `[ -d "$d" ] || exit 44
if [ -e "$d/code" ]; then echo "code $(cat "$d/code")"
elif [ -s "$d/runner" ] && ! kill -0 "$(cat "$d/runner")" 2>/dev/null; then echo "lost"
else echo "running"; fi
for k in started ended; do [ -s "$d/$k" ] && echo "$k $(cat "$d/$k")"; done
for k in before after; do [ -s "$d/$k" ] && sed "s/^/$k /" "$d/$k"; done
for k in "$d"/err.*; do [ -e "$k" ] && tail -n 20 "$k" | head -c 4000 | sed "s/^/line /"; done
exit 0
`

// ParseExit reads what ReadExit printed: nil while the program runs. The cause is
// out of memory only where the kernel's counter grew during the run; the counter
// is that of the whole sandbox, which Evidence says.
func ParseExit(text []byte) (*sandbox.Exit, error) {
	f := triage.ExitFacts{Source: Source}
	counts := map[string]int64{}
	known, running := false, false
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		switch key {
		case "code":
			f.Raw, known = strings.TrimSpace(value), true
		case "lost":
			known = true
		case "running":
			known, running = true, true
		case "ended":
			if at, err := strconv.ParseInt(value, 10, 64); err == nil {
				f.At = time.Unix(at, 0).UTC()
			}
		case "before", "after":
			readCounter(counts, key, value, &f.CounterSource)
		case "line":
			f.Lines = append(f.Lines, value)
		}
	}
	switch {
	case !known:
		return nil, fmt.Errorf("%w: no state of the run", ErrOutput)
	case running:
		return nil, nil //nolint:nilnil // it runs: that is an answer, and no exit
	}
	if before, after := counts["before"], counts["after"]; f.CounterSource != "" {
		grown := max(0, after-before)
		f.OOMKills = &grown
	}
	e := triage.ClassifyExit(triage.NewMatcher(), f)
	if f.Raw == "" {
		e.Class = sandbox.ClassUnknown
		e.Evidence = append(e.Evidence, sandbox.Evidence{What: "exit", Value: "nobody saw it: what watched the program is gone", Source: Source, At: f.At})
	}
	return &e, nil
}

// readCounter takes oom_kill out of memory.events or memory.oom_control.
func readCounter(counts map[string]int64, when, line string, source *string) {
	if file, ok := strings.CutPrefix(line, "file "); ok {
		*source = file
		return
	}
	if name, n, ok := strings.Cut(line, " "); ok && name == "oom_kill" {
		counts[when], _ = strconv.ParseInt(n, 10, 64)
	}
}
