package tui

import (
	"errors"
	"io"
	"os"

	"sbx/internal/fault"
)

// errTerminalLost is why the dashboard ends where nothing can be read or written any more. Where SIGHUP is
// ignored, as under nohup, no signal says so.
var errTerminalLost = fault.New(fault.KindCanceled, "the terminal is gone")

// watchedFile is one side of the terminal. Lost is called when it is gone.
type watchedFile struct {
	*os.File

	lost func()
}

// Read is io.Reader's. A terminal that is there has no end.
func (f watchedFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		f.lost()
	}
	return n, err
}

// Write is io.Writer's.
func (f watchedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if err != nil {
		f.lost()
	}
	return n, err
}

// watched gives the sides of a terminal that call lost.
func (t Terminal) watched(lost func()) (in io.Reader, out io.Writer) {
	return watchedFile{t.In, lost}, watchedFile{t.Out, lost}
}
