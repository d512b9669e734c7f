package fake

import (
	"os"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// program is a command line as a schedule: what it writes when, and how it
// ends. It understands echo, cat, sleep, true, false and `sh -c` with those,
// `exit N`, `>&2` and $NAME; whatever else there is never writes or ends.
type program struct {
	known bool
	steps []step
	code  int
	ends  bool

	result *sandbox.Exit // how it ends; nil = by its code
}

// step is one thing a program does, after a wait.
type step struct {
	wait   time.Duration
	stream string // "" = it writes nothing
	text   string
	copies bool // stdin to stdout
	open   bool // no line end follows the text
}

// compile reads a command line. An unknown program is not an error here: a
// created sandbox runs it in silence, an exec reports 127.
func compile(args, env []string) program {
	if len(args) == 0 {
		return program{}
	}
	if args[0] == "sh" && len(args) >= 3 && args[1] == "-c" {
		return script(args[2], env)
	}
	p := program{}
	p.command(args)
	return p
}

func script(text string, env []string) program {
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
				p.code, _ = strconv.Atoi(words[1]) // as a shell: what is no number counts as 0
			}
			return p
		}
		if !p.command(words) {
			p.steps = append(p.steps, step{stream: "stderr", text: "sh: " + words[0] + ": not found"})
			p.known, p.ends, p.code = true, true, 127
		}
		if !p.ends {
			return p
		}
	}
	return p
}

// command adds one simple command; false means that there is no such program.
func (p *program) command(words []string) bool {
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
	case "cat":
		p.steps = append(p.steps, step{copies: true})
	case "sleep":
		d, ends := nap(words)
		p.ends = ends
		p.steps = append(p.steps, step{wait: d})
	default:
		p.known, p.ends = false, false
		return false
	}
	return true
}

// nap reads the argument of sleep, in seconds; what is no number lasts for ever.
func nap(words []string) (time.Duration, bool) {
	if len(words) < 2 {
		return 0, true
	}
	seconds, err := strconv.ParseFloat(strings.TrimSuffix(words[1], "s"), 64)
	if err != nil || !(seconds >= 0 && seconds < 1e8) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// length is how long the program runs; false = for ever.
func (p program) length() (time.Duration, bool) {
	var d time.Duration
	for _, s := range p.steps {
		d += s.wait
	}
	return d, p.known && p.ends
}

// moments are the offsets at which the program does something.
func (p program) moments() []time.Duration {
	var at time.Duration
	out := make([]time.Duration, 0, len(p.steps))
	for _, s := range p.steps {
		at += s.wait
		out = append(out, at)
	}
	return out
}

func (p program) exit() *sandbox.Exit {
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
