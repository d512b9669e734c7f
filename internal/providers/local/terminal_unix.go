//go:build unix

package local

import (
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sbx/internal/providers"
)

// openTerminal makes a terminal of its own for the command, so that it has
// job control and sizes like any other, and the caller's stays the caller's.
func (s *streams) openTerminal(cmd providers.Command) error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	s.keep(master)
	s.keep(slave)
	s.theirs = [3]*os.File{slave, slave, slave}
	s.in, s.outs = master, []*os.File{master}
	if err := resize(master, cmd.TTY.Size); err != nil {
		s.close()
		return err
	}
	if cmd.TTY.Resize != nil {
		go func() { // ends with the caller's channel
			for size := range cmd.TTY.Resize {
				if resize(master, size) != nil {
					return
				}
			}
		}()
	}
	return nil
}

func resize(terminal *os.File, size providers.Size) error {
	if size.Columns == 0 || size.Rows == 0 {
		return nil
	}
	return pty.Setsize(terminal, &pty.Winsize{Cols: size.Columns, Rows: size.Rows})
}

// shutdown ends a connection for both sides, which wakes a blocked read.
func shutdown(conn *os.File) error { return unix.Shutdown(int(conn.Fd()), unix.SHUT_RDWR) }
