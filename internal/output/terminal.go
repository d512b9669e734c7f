package output

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"sbx/internal/fault"
)

// ErrClosed is what writing data returns once the reader of stdout has gone, as
// after `| head`. The composition root maps it to exit 0 and prints nothing.
// A verb that changes things goes on working when it sees it.
var ErrClosed = errors.New("the reader of standard output has gone")

// terminal is the two output streams and the progress line between them: the
// line is wiped before anything else appears on the same screen. Its methods may
// be called at the same time.
type terminal struct {
	mu       sync.Mutex
	out, err io.Writer
	held     []byte    // rows that wait for more of their kind
	wrote    time.Time // time of the last write
	due      bool      // a timer will write what is held
	shared   bool      // stdout shows on the screen that stderr shows on
	line     bool      // a progress line is on the screen
	failure  error
}

// Rows of a list that follow each other closely share a write: ten thousand would
// cost more than all the rest of a listing. A first row goes out at once.
const (
	gatherFor = 5 * time.Millisecond
	gatherMax = 32 << 10 // bytes
)

// Write writes data to stdout, behind what was gathered. After a failure every
// further write returns it: ErrClosed, or an error of fault.KindUnknown for a full
// disk and the like.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.releaseHeld(); err != nil {
		return 0, err
	}
	return t.writeOut(b)
}

// gatherOutput writes data that may wait for more, until flush at the latest.
func (t *terminal) gatherOutput(b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = append(t.held, b...)
	if len(t.held) >= gatherMax || time.Since(t.wrote) >= gatherFor {
		return t.releaseHeld()
	}
	if !t.due {
		t.due = true
		time.AfterFunc(gatherFor, func() { _ = t.flushOutput() }) // the next write reports what failed
	}
	return t.failure
}

// flushOutput writes what was gathered.
func (t *terminal) flushOutput() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due = false
	return t.releaseHeld()
}

// releaseHeld writes what is held. The lock is held.
func (t *terminal) releaseHeld() error {
	if len(t.held) > 0 {
		_, _ = t.writeOut(t.held) // it keeps the failure
		t.held = t.held[:0]
	}
	return t.failure
}

// writeOut writes to stdout. The lock is held.
func (t *terminal) writeOut(b []byte) (int, error) {
	if t.failure != nil {
		return 0, t.failure
	}
	if t.shared {
		t.wipeProgressLine()
	}
	n, err := t.out.Write(b)
	t.failure, t.wrote = outputError(err), time.Now()
	return n, t.failure
}

func outputError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return ErrClosed
	}
	return fault.New(fault.KindUnknown, "write to standard output: %w", err).
		WithHint("the output is incomplete")
}

// writeErr writes whole lines to stderr. Failures are dropped: there is nowhere left
// to report them.
func (t *terminal) writeErr(lines string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.releaseHeld() // rows before the words about them
	t.wipeProgressLine()
	fmt.Fprint(t.err, lines)
}

// setProgressLine replaces the progress line; "" removes it.
func (t *terminal) setProgressLine(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wipeProgressLine()
	if line != "" {
		fmt.Fprint(t.err, line)
		t.line = true
	}
}

func (t *terminal) wipeProgressLine() {
	if t.line {
		fmt.Fprint(t.err, "\r\x1b[K")
		t.line = false
	}
}

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
