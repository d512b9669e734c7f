package tui

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// emulator is the other end of a terminal: it reads what is drawn.
type emulator struct {
	master, tty *os.File

	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed and replaced at every read
	done chan struct{}
}

func newEmulator(t *testing.T) *emulator {
	t.Helper()
	opened, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(opened, &pty.Winsize{Rows: 30, Cols: 100}))
	fd, err := syscall.Dup(int(opened.Fd())) // the same file, whose reads end when it is closed
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	require.NoError(t, syscall.SetNonblock(fd, true))
	e := &emulator{master: os.NewFile(uintptr(fd), "master"), tty: tty, more: make(chan struct{}), done: make(chan struct{})}
	go e.read()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = e.master.Close()
		<-e.done
	})
	return e
}

func (e *emulator) read() {
	defer close(e.done)
	b := make([]byte, 64<<10)
	for {
		n, err := e.master.Read(b)
		e.mu.Lock()
		e.text.Write(b[:n])
		close(e.more)
		e.more = make(chan struct{})
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// seen is all that was drawn so far.
func (e *emulator) seen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.String()
}

// wait waits until a text was drawn.
func (e *emulator) wait(t *testing.T, text string) {
	t.Helper()
	limit := time.After(tiertest.Limit(t))
	for {
		e.mu.Lock()
		more, found := e.more, strings.Contains(e.text.String(), text)
		e.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-e.done:
			require.Failf(t, "the terminal is closed", "%q was not drawn", text)
		case <-limit:
			require.Failf(t, "not drawn", "%q in %q", text, e.seen())
		}
	}
}

// modes are the settings of the terminal.
func (e *emulator) modes(t *testing.T) (modes syscall.Termios) {
	t.Helper()
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, e.tty.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&modes)))
	require.Zero(t, errno)
	return modes
}

// restored are the sequences that a terminal gets when the dashboard leaves it, each after what it ends.
func restored() map[string]string {
	return map[string]string{
		"\x1b[?1049l": "\x1b[?1049h", // the other screen
		"\x1b[?25h":   "\x1b[?25l",   // the cursor
		"\x1b[?1004l": "\x1b[?1004h", // reports of the focus
		"\x1b[?2004l": "\x1b[?2004h", // marks around pastes
		"\x1b[?1007r": "\x1b[?1007h", // the wheel
	}
}

// TestEveryEndRestoresTheTerminal, and leaves no goroutine.
//
//nolint:paralleltest // it looks for goroutines
func TestEveryEndRestoresTheTerminal(t *testing.T) {
	signal := errors.New("a signal")
	for name, tc := range map[string]struct {
		leave func(e *emulator, cancel context.CancelCauseFunc, breakIt func())
		err   error
		lost  bool
	}{
		"q":        {leave: func(e *emulator, _ context.CancelCauseFunc, _ func()) { _, _ = e.master.WriteString("q") }},
		"ctrl+c":   {leave: func(e *emulator, _ context.CancelCauseFunc, _ func()) { _, _ = e.master.WriteString("\x03") }},
		"a signal": {leave: func(_ *emulator, cancel context.CancelCauseFunc, _ func()) { cancel(signal) }, err: signal},
		"a panic": {
			leave: func(e *emulator, _ context.CancelCauseFunc, breakIt func()) {
				breakIt()
				_, _ = e.master.WriteString("j")
			},
			err: tea.ErrProgramPanic,
		},
		"a lost terminal": {leave: func(e *emulator, _ context.CancelCauseFunc, _ func()) { _ = e.master.Close() }, err: errTerminalLost, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEmulator(t)
			before, left := e.modes(t), strings.Count(stacks(), "bubbletea")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var broken atomic.Bool
			now := func() time.Time {
				if broken.Load() {
					panic("planted")
				}
				return noon()
			}
			ended := make(chan error, 1)
			go func() {
				ended <- Run(ctx, newScene(), now, Terminal{In: e.tty, Out: e.tty, Environ: []string{"TERM=xterm-256color"}, Program: "sbx"})
			}()
			e.wait(t, "builder")
			assert.NotEqual(t, before.Lflag, e.modes(t).Lflag, "raw mode")
			tc.leave(e, cancel, func() { broken.Store(true) })
			select {
			case err := <-ended:
				require.ErrorIs(t, err, tc.err)
			case <-time.After(tiertest.Limit(t)):
				require.Fail(t, "it did not end")
			}
			if !tc.lost {
				assert.Equal(t, before, e.modes(t), "the modes of the terminal")
				for ends, begins := range restored() {
					e.wait(t, ends)
					assert.Greater(t, strings.LastIndex(e.seen(), ends), strings.LastIndex(e.seen(), begins), "%q", ends)
				}
			}
			assert.Eventually(t, func() bool { return strings.Count(stacks(), "bubbletea") <= left }, tiertest.Limit(t), 5*time.Millisecond, "goroutines are left")
			if t.Failed() {
				t.Log(stacks())
			}
		})
	}
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}
