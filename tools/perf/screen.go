package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/creack/pty"
)

// screenLimit is how long a text is waited for.
const screenLimit = time.Minute

// screen is a program in a pseudo-terminal of 140 x 40 cells. It answers no query of the program, as many
// terminals do not. The program stands still while nobody reads: await or watch.
type screen struct {
	cmd     *exec.Cmd
	tty     *os.File
	begun   time.Time
	written float64 // bytes
	drawn   []byte  // what was written and not awaited yet
}

func openScreen(cmd *exec.Cmd) (*screen, error) {
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8")
	s := &screen{cmd: cmd, begun: time.Now()}
	var err error
	s.tty, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 140})
	return s, err
}

// await reads until a text is drawn. It gives the time since the start of the program, in milliseconds.
func (s *screen) await(text string) (float64, error) {
	err := s.tty.SetReadDeadline(time.Now().Add(screenLimit))
	for err == nil {
		if at := bytes.Index(s.drawn, []byte(text)); at >= 0 {
			s.drawn = s.drawn[at+len(text):]
			return since(s.begun), nil
		}
		err = s.read()
	}
	return 0, fmt.Errorf("%s does not draw %q: %w: %q", s.cmd.Path, text, err, s.drawn[max(0, len(s.drawn)-500):])
}

// watch reads for a time.
func (s *screen) watch(d time.Duration) error {
	err := s.tty.SetReadDeadline(time.Now().Add(d))
	for err == nil {
		err = s.read()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("%s has ended: %w", s.cmd.Path, err)
}

func (s *screen) read() error {
	chunk := make([]byte, 64<<10)
	n, err := s.tty.Read(chunk)
	s.written += float64(n)
	s.drawn = append(s.drawn, chunk[:n]...)
	return err
}

// busy watches for a time, and gives the share of a core that the program takes, in percent.
func (s *screen) busy(d time.Duration) (float64, error) {
	before, err := onProcessor(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.watch(d); err != nil {
		return 0, err
	}
	took := since(began)
	after, err := onProcessor(s.cmd.Process.Pid)
	return 100 * (after - before) / took, err
}

// close ends the program, whatever it does.
func (s *screen) close() {
	quit(s.cmd)
	_ = s.tty.Close()
}
