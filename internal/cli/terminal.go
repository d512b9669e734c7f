package cli

import (
	"os"
	"os/user"
	"strings"
	"time"

	"golang.org/x/term"

	"sbx/internal/process"
	"sbx/internal/providers"
)

// completeProcess fills in what main leaves out: which streams are terminals, their width, the
// user's home, and the working directory ("" when it no longer exists).
func completeProcess(p process.Process) process.Process {
	for _, s := range []*process.Stream{&p.Stdin, &p.Stdout, &p.Stderr} {
		if s.File == nil {
			continue
		}
		fd := int(s.File.Fd())
		if s.TTY = term.IsTerminal(fd); s.TTY {
			if width, _, err := term.GetSize(fd); err == nil {
				s.Width = width
			}
		}
	}
	if p.Home == "" {
		if u, err := user.Current(); err == nil {
			p.Home, p.Account = u.HomeDir, u.Username
		}
	}
	if p.Host == "" {
		if name, err := os.Hostname(); err == nil {
			p.Host = name
		}
	}
	if p.Workdir == "" {
		if dir, err := os.Getwd(); err == nil {
			p.Workdir = dir
		}
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	return p
}

// resizeEvery is how often a terminal's size is looked at while a command has
// it: a window is dragged by a hand.
const resizeEvery = 250 * time.Millisecond

// watchTerminalSize reads the terminal's size and watches it; without a terminal it is zero
// and never changes.
func (a *app) watchTerminalSize() (providers.Size, <-chan providers.Size, func()) {
	read := func() providers.Size {
		if a.process.Stdin.File == nil || !a.process.Stdin.TTY {
			return providers.Size{}
		}
		columns, rows, err := term.GetSize(int(a.process.Stdin.File.Fd()))
		if err != nil {
			return providers.Size{}
		}
		return providers.Size{Columns: uint16(columns), Rows: uint16(rows)}
	}
	changes, done := make(chan providers.Size), make(chan struct{})
	last := read()
	go func() {
		defer close(changes)
		pace := time.NewTicker(resizeEvery)
		defer pace.Stop()
		for known := last; ; {
			select {
			case <-done:
				return
			case <-pace.C:
			}
			if now := read(); now != known {
				known = now
				select {
				case changes <- now:
				case <-done:
					return
				}
			}
		}
	}()
	return last, changes, func() { close(done) }
}

// rawTerminal hands every key to the command in the sandbox.
func (a *app) rawTerminal() (func(), error) {
	if a.process.Stdin.File == nil {
		return func() {}, nil
	}
	fd := int(a.process.Stdin.File.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	restore := func() { _ = term.Restore(fd, state) } // nothing better can be done with a terminal that is gone
	if a.process.OnQuit == nil {
		return restore, nil
	}
	stop := a.process.OnQuit(restore)
	return func() { stop(); restore() }, nil
}

func joinWords(words []string) string { return strings.Join(words, ",") }
