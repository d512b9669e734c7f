package output

import (
	"sync"
	"time"
)

// progressAfter is how long work may take in silence (issue 2: "progress on
// stderr for anything over a second").
const progressAfter = time.Second

// Progress is one line on stderr that says what sbx waits for. It appears when
// the work has taken a second, on a terminal only and not with Quiet. Its
// methods may be called at the same time and from anywhere.
type Progress struct {
	mu     sync.Mutex
	screen *terminal
	timer  *time.Timer // nil = never shown
	width  int
	label  string
	text   string
	shown  bool
}

// Progress starts a progress line. Done must be called.
func (p *Printer) Progress(label string) *Progress {
	g := &Progress{screen: p.screen, width: p.errWidth, label: label}
	if p.progress {
		g.mu.Lock() // the timer may fire before it is stored
		defer g.mu.Unlock()
		g.timer = time.AfterFunc(progressAfter, g.showLine)
	}
	return g
}

func (g *Progress) showLine() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer == nil {
		return
	}
	g.shown = true
	g.screen.setProgressLine(g.fittingLine())
}

// Update says how far the work is, in plain words: "3 of 5 providers".
func (g *Progress) Update(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text = text
	if g.shown {
		g.screen.setProgressLine(g.fittingLine())
	}
}

// Done removes the line. Further calls do nothing.
func (g *Progress) Done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer == nil {
		return
	}
	g.timer.Stop()
	g.timer = nil
	if g.shown {
		g.shown = false
		g.screen.setProgressLine("")
	}
}

// fittingLine fits one row of the terminal, with a cell to spare for the cursor.
func (g *Progress) fittingLine() string {
	line := g.label
	if g.text != "" {
		line += ": " + g.text
	}
	return truncateCells(Escape(line), g.width-1)
}
