package output

import (
	"bytes"
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
var ErrClosed = errors.New("the reader of standard output has closed it")

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
	line     string    // the progress line on the screen; "" = none
	midLine  bool      // something else ends in the middle of a line
	failure  error
	silent   bool // a program draws on the screen: nothing goes to stderr

	framing bool // what is written is held until the frame is shown
	frame   []framePart
}

// framePart is a piece of a frame, for stdout or stderr.
type framePart struct {
	text  []byte
	toErr bool
}

// setSilent drops the lines that are written to stderr from now on.
func (t *terminal) setSilent(silent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silent = silent
}

func (t *terminal) holdFrame() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.framing, t.frame = true, nil
}

func (t *terminal) dropFrame() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.framing, t.frame, t.held = false, nil, nil
}

// showFrame writes the held frame, behind what makes room for it on stdout.
func (t *terminal) showFrame(clearing string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.releaseHeld() // it keeps the failure
	frame := t.frame
	t.framing, t.frame = false, nil
	if clearing != "" {
		_, _ = t.writeOut([]byte(clearing))
	}
	for _, part := range frame {
		if part.toErr {
			t.writeErrNow(part.text)
		} else {
			_, _ = t.writeOut(part.text)
		}
	}
	return t.failure
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
	if t.framing {
		t.frame = append(t.frame, framePart{text: bytes.Clone(b)})
		return len(b), nil
	}
	if t.shared {
		t.wipeProgressLine()
		t.noteEnd(b)
	}
	n, err := t.out.Write(b)
	t.failure, t.wrote = WriteError(err), time.Now()
	return n, t.failure
}

// WriteError is the error of a failed write to stdout: ErrClosed where the reader has gone.
func WriteError(err error) error {
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
	if t.framing {
		t.frame = append(t.frame, framePart{text: []byte(lines), toErr: true})
		return
	}
	t.writeErrNow([]byte(lines))
}

// writeErrNow is writeErr outside a frame. The lock is held.
func (t *terminal) writeErrNow(lines []byte) {
	if t.silent {
		return
	}
	t.wipeProgressLine()
	t.noteEnd(lines)
	_, _ = t.err.Write(lines)
}

// noteEnd notes where the text leaves the cursor. The lock is held.
func (t *terminal) noteEnd(text []byte) {
	if len(text) > 0 {
		t.midLine = text[len(text)-1] != '\n'
	}
}

// startLine brings the cursor to the start of a line, where a person who has pressed enter has
// brought it already.
func (t *terminal) startLine(entered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !entered {
		fmt.Fprintln(t.err)
	}
	t.midLine = false
}

// writeProgress is writeErr for a line that must not break another one.
func (t *terminal) writeProgress(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.midLine {
		fmt.Fprint(t.err, line)
	}
}

// setProgressLine replaces the progress line; "" removes it.
func (t *terminal) setProgressLine(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if line == t.line {
		return
	}
	t.wipeProgressLine()
	if line != "" && !t.midLine {
		fmt.Fprint(t.err, line)
		t.line = line
	}
}

func (t *terminal) wipeProgressLine() {
	if t.line != "" {
		fmt.Fprint(t.err, "\r\x1b[K")
		t.line = ""
	}
}
