package fake

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// program is a command line as a schedule: its output with times, and its end. It supports echo, printf,
// cat, sleep, true, false and `sh -c` with those, `exit N`, `>&2` and $NAME; any other program neither
// writes nor ends.
type program struct {
	known bool
	steps []step
	code  int
	ends  bool

	result *sandbox.Exit // how it ends; nil = by its code
}

type step struct {
	wait   time.Duration
	stream string // "" = it writes nothing
	text   string
	copies bool // stdin to stdout
	open   bool // no line end follows the text
}

// parseCommand parses a command line. An unknown program is no error here: a created sandbox runs it
// without output, an exec reports 127.
func parseCommand(args, env []string) program {
	if len(args) == 0 {
		return program{}
	}
	if args[0] == "sh" && len(args) >= 3 && args[1] == "-c" {
		return parseScript(args[2], env)
	}
	p := program{}
	p.addCommand(args)
	return p
}

func parseScript(text string, env []string) program {
	p := program{known: true, ends: true}
	lookup := func(name string) string {
		for _, kv := range env {
			if k, v, _ := strings.Cut(kv, "="); k == name {
				return v
			}
		}
		return ""
	}
	unquote := strings.NewReplacer("'", "", `"`, "")
	for statement := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(unquote.Replace(os.Expand(statement, lookup)))
		if len(words) == 0 {
			continue
		}
		if words[0] == "exit" {
			if len(words) > 1 {
				p.code, _ = strconv.Atoi(words[1]) // a text that is no number is 0
			}
			return p
		}
		if !p.addCommand(words) {
			p.steps = append(p.steps, step{stream: "stderr", text: "sh: " + words[0] + ": not found"})
			p.known, p.ends, p.code = true, true, 127
		}
		if !p.ends {
			return p
		}
	}
	return p
}

// addCommand adds one simple command; false for an unknown program.
func (p *program) addCommand(words []string) bool {
	stream := "stdout"
	if n := len(words); n > 1 && words[n-1] == ">&2" {
		stream, words = "stderr", words[:n-1]
	}
	p.known, p.ends, p.code = true, true, 0
	switch words[0] {
	case "true":
	case "false":
		p.code = 1
	case "echo":
		p.steps = append(p.steps, step{stream: stream, text: strings.Join(words[1:], " ")})
	case "printf":
		p.steps = append(p.steps, step{stream: stream, text: strings.Join(words[1:], " "), open: true})
	case "cat":
		p.steps = append(p.steps, step{copies: true})
	case "sleep":
		d, ends := parseSleep(words)
		p.ends = ends
		p.steps = append(p.steps, step{wait: d})
	default:
		p.known, p.ends = false, false
		return false
	}
	return true
}

// parseSleep parses the argument of sleep, in seconds; false for an endless sleep (no number).
func parseSleep(words []string) (time.Duration, bool) {
	if len(words) < 2 {
		return 0, true
	}
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(words[1], "s"), 64)
	if err != nil || !(seconds >= 0 && seconds < 1e8) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// runTime is how long the program runs; false = without an end.
func (p program) runTime() (time.Duration, bool) {
	var d time.Duration
	for _, s := range p.steps {
		d += s.wait
	}
	return d, p.known && p.ends
}

func (p program) stepTimes() []time.Duration {
	var at time.Duration
	out := make([]time.Duration, 0, len(p.steps))
	for _, s := range p.steps {
		at += s.wait
		out = append(out, at)
	}
	return out
}

func (p program) exitOfProgram() *sandbox.Exit {
	if p.result != nil {
		return new(*p.result)
	}
	class := sandbox.ClassOK
	if p.code != 0 {
		class = sandbox.ClassAgentError
	}
	e := exitOf(p.code, class, sandbox.CauseNone)
	e.Raw = strconv.Itoa(p.code)
	return e
}

// Script is the output of a program with times, and its end.
type Script struct {
	Lines []Line
	For   time.Duration // how long it runs, at least until its last line; Forever = until its sandbox ends
	Exit  sandbox.Exit  // without a class: success
}

// Line is one piece of a script's output.
type Line struct {
	At     time.Duration // since its start
	Stream string        // "" = stdout
	Text   string
	Open   bool // no line end follows in the output of a command
}

func (s Script) toProgram() program {
	p := program{known: true, ends: s.For != Forever, result: &s.Exit}
	if s.Exit.Class == "" {
		p.result = exitOf(0, sandbox.ClassOK, sandbox.CauseNone)
		p.result.Raw = "0"
	}
	var at time.Duration
	lines := slices.Clone(s.Lines)
	slices.SortStableFunc(lines, func(a, b Line) int { return int(a.At - b.At) })
	for _, l := range lines {
		p.steps = append(p.steps, step{wait: max(0, l.At-at), stream: cmp.Or(l.Stream, "stdout"), text: l.Text, open: l.Open})
		at = max(at, l.At)
	}
	if s.For > at {
		p.steps = append(p.steps, step{wait: s.For - at})
	}
	return p
}

// Ran is one command that was started in a sandbox.
type Ran struct {
	ID   string
	Args []string
	At   time.Time
	Lost bool // its stream was cut, and it still ran
}

// Ran are the commands that Exec has started, oldest first.
func (p *Provider) Ran() []Ran {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ran)
}

// Finish ends the program of a sandbox now; false without a running one.
func (p *Provider) Finish(id string, exit sandbox.Exit) (running bool) {
	p.editBox(id, func(b *box) {
		now := p.o.Now()
		ended, _ := b.endState(now)
		over, _ := b.programEnd(now)
		if running = ended.IsZero() && over.IsZero(); running {
			b.finish, b.finishAs = now, &exit
		}
	})
	return running
}
