// Package process is the process as a value: arguments, environment, streams,
// clock and identity are handed down from main and never read ambiently, so
// that every command runs the same in a test as in a terminal.
//
// It has no policy and imports the standard library only.
package process

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Process is what the operating system gave to this run of sbx.
type Process struct {
	Args    []string // with the program's name first
	Environ []string // KEY=VALUE
	Stdin   Stream
	Stdout  Stream
	Stderr  Stream
	Workdir string // "" when it is gone
	Home    string // the home of the passwd entry, so that `env -i` finds the same files
	Account string // the name of the passwd entry; "" = it has none, or Home was given
	UID     int
	PID     int
	Host    string // the machine's name; "" when it is not known
	Now     func() time.Time
	Signals func() (<-chan os.Signal, func()) // starts watching INT, TERM and HUP; the func stops it
	EndBy   func(os.Signal)                   // ends this process by the signal itself, so that a shell's loop ends, too; nil: the exit code says it
	// OnQuit registers restore, which is called before SIGQUIT prints all goroutines and ends this process, so that the
	// terminal is as it was; stop gives that up. Nil: nothing is restored.
	OnQuit    func(restore func()) (stop func())
	TimeScale TimeScale          // of limits in real time; tests set it
	At        func(point string) // called at named points of a task's life and of a runbook's run, so that tests can end the process there; nil otherwise
}

// Stream is one of the three standard streams.
type Stream struct {
	Reader io.Reader
	Writer io.Writer
	File   *os.File // the real descriptor, nil in tests
	TTY    bool
	Width  int // columns of the terminal; 0 = unknown or none
}

// Read reads from the stream; a stream without a reader is at its end.
func (s Stream) Read(b []byte) (int, error) {
	if s.Reader == nil {
		return 0, io.EOF
	}
	return s.Reader.Read(b)
}

// Write writes to the stream; without a writer it drops the text.
func (s Stream) Write(b []byte) (int, error) {
	if s.Writer == nil {
		return len(b), nil
	}
	return s.Writer.Write(b)
}

// Name is the name that the program was called by, without its folder.
func (p Process) Name() string {
	if len(p.Args) == 0 {
		return "sbx"
	}
	name := p.Args[0]
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	return strings.TrimSuffix(name, ".exe")
}

// User is the person behind this process, as journals and leases name them, also where it runs
// as root by sudo.
func (p Process) User() string {
	return cmp.Or(p.Getenv("SUDO_USER"), p.Getenv("USER"), p.Getenv("LOGNAME"), p.Account, fmt.Sprintf("uid %d", p.UID))
}

// Lookup reads one environment variable.
func (p Process) Lookup(key string) (string, bool) {
	for _, entry := range slices.Backward(p.Environ) {
		if k, v, ok := strings.Cut(entry, "="); ok && k == key {
			return v, true
		}
	}
	return "", false
}

// Getenv is Lookup without the question whether it is set.
func (p Process) Getenv(key string) string {
	v, _ := p.Lookup(key)
	return v
}
