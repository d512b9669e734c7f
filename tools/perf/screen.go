package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/creack/pty"
)

// The size of a screen, in cells.
const (
	screenColumns = 140
	screenLines   = 40
)

// screenLimit is how long a screen is waited for.
const screenLimit = time.Minute

// screen is a program in a pseudo-terminal of its own. It answers no query of the program, as many
// terminals do not.
type screen struct {
	cmd   *exec.Cmd
	tty   *os.File
	begun time.Time
	ended chan struct{} // closed when the program has closed the terminal

	mu    sync.Mutex
	drawn []byte
	seen  int           // how much of drawn was awaited
	more  chan struct{} // closed and replaced at every read
}

// openScreen starts a program in a terminal.
func openScreen(cmd *exec.Cmd) (*screen, error) {
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8")
	s := &screen{cmd: cmd, begun: time.Now(), ended: make(chan struct{}), more: make(chan struct{})}
	var err error
	if s.tty, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: screenLines, Cols: screenColumns}); err != nil {
		return nil, err
	}
	go s.read()
	return s, nil
}

// read keeps what is drawn until the program ends; the kernel then fails the read.
func (s *screen) read() {
	defer close(s.ended)
	chunk := make([]byte, 64<<10)
	for {
		n, err := s.tty.Read(chunk)
		s.mu.Lock()
		s.drawn = append(s.drawn, chunk[:n]...)
		close(s.more)
		s.more = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// written is how many bytes the program has written.
func (s *screen) written() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(len(s.drawn))
}

// await waits until a text is drawn, after what was awaited before. It gives the time since the
// start of the program, in milliseconds.
func (s *screen) await(text string) (float64, error) {
	limit := time.After(screenLimit)
	for {
		s.mu.Lock()
		more, at := s.more, bytes.Index(s.drawn[s.seen:], []byte(text))
		if at >= 0 {
			s.seen += at + len(text)
		}
		last := s.drawn[max(0, len(s.drawn)-2000):]
		s.mu.Unlock()
		if at >= 0 {
			return since(s.begun), nil
		}
		select {
		case <-more:
		case <-s.ended:
			return 0, fmt.Errorf("%s has ended without %q: %q", s.cmd.Path, text, last)
		case <-limit:
			return 0, fmt.Errorf("%s does not draw %q: %q", s.cmd.Path, text, last)
		}
	}
}

// press types a text.
func (s *screen) press(text string) error {
	_, err := s.tty.WriteString(text)
	return err
}

// close ends the program, whatever it does.
func (s *screen) close() {
	quit(s.cmd)
	<-s.ended
	_ = s.tty.Close()
}
