package output

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

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
	shared   bool // stdout shows on the screen that stderr shows on
	line     bool // a progress line stands on the screen
	failure  error
}

// Write writes data to stdout. After a failure every further write returns it:
// ErrClosed, or an error of fault.KindUnknown for a full disk and the like.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure != nil {
		return 0, t.failure
	}
	if t.shared {
		t.wipe()
	}
	n, err := t.out.Write(b)
	t.failure = outputError(err)
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

// say writes whole lines to stderr. Failures are dropped: there is nowhere left
// to report them.
func (t *terminal) say(lines string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wipe()
	fmt.Fprint(t.err, lines)
}

// progress replaces the progress line; "" removes it.
func (t *terminal) progress(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wipe()
	if line != "" {
		fmt.Fprint(t.err, line)
		t.line = true
	}
}

func (t *terminal) wipe() {
	if t.line {
		fmt.Fprint(t.err, "\r\x1b[K")
		t.line = false
	}
}
