package fake

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Script is a program as a plan: what it writes when, and how it ends. Without
// Lines it is silent.
type Script struct {
	Lines []Line
	For   time.Duration // how long it runs, at least until its last line; Forever = until its sandbox ends
	Exit  sandbox.Exit  // how it ends; without a class, as one that succeeds
}

// Line is one piece of a script's output.
type Line struct {
	At     time.Duration // since its start
	Stream string        // "" = stdout
	Text   string
	Open   bool // no line end follows, where a command's caller reads bytes
}

// program makes steps of a script.
func (s Script) program() program {
	p := program{known: true, ends: s.For != Forever, result: &s.Exit}
	if s.Exit.Class == "" {
		p.result = exitOf(0, sandbox.ClassOK, sandbox.CauseNone)
		p.result.Raw = "0"
	}
	var at time.Duration
	lines := slices.Clone(s.Lines)
	slices.SortStableFunc(lines, func(a, b Line) int { return int(a.At - b.At) })
	for _, l := range lines {
		stream := l.Stream
		if stream == "" {
			stream = "stdout"
		}
		p.steps = append(p.steps, step{wait: max(0, l.At-at), stream: stream, text: l.Text, open: l.Open})
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
	Lost bool // its stream was cut, and it ran on
}

// Ran gives the commands that Exec has started so far, oldest first.
func (p *Provider) Ran() []Ran {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.ran)
}

// Finish ends the program of a sandbox now, however long it would have run; false
// when there is none that runs.
func (p *Provider) Finish(id string, exit sandbox.Exit) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[id]
	now := p.o.Now()
	if !ok {
		return false
	}
	ended, _ := b.ended(now)
	over, _ := b.finished(now)
	if !ended.IsZero() || !over.IsZero() {
		return false
	}
	b.finish, b.finishAs = now, &exit
	p.broadcast()
	return true
}
