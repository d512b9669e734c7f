// Package wire is the messages between the processes of one local sandbox: orders of the
// client to a supervisor and of the supervisor to a stub, reports of the stub, and commands
// over a socket of a running sandbox.
//
// Messages are JSON, one per line, and tolerant of unknown fields, because an upgraded sbx
// communicates with supervisors of an older one. No process is started here.
package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"sbx/internal/providers/local/record"
)

// The hidden first arguments with which the binary is a supervisor or a stub. They are checked
// before flags and configuration.
const (
	SupervisorArg = "__sbx-supervisor"
	StubArg       = "__sbx-stub"
)

// MarkerKey is the environment variable that every process of a sandbox inherits; its value is
// the sandbox's id. Remaining processes without a cgroup are found by it.
const MarkerKey = "SBX_SANDBOX_ID"

// The descriptors of a supervisor after the standard ones; its order arrives on standard input.
const (
	SupervisorReadyFD = 3 // for its answer, Ready
	SupervisorLockFD  = 4 // the sandbox's lock, already held
)

// The descriptors of a stub; its standard output and error are the program's.
const (
	StubOrderFD  = 3
	StubReportFD = 4
	StubSocketFD = 5 // listens for commands
	StubLifeFD   = 6 // closed when the supervisor ends
)

// Order is the client's order to a supervisor.
type Order struct {
	Root        string        `json:"root"`   // of the record store
	Record      record.Record `json:"record"` // as known to the client
	Env         []string      `json:"env"`    // KEY=VALUE, complete
	RequireHard bool          `json:"require_hard,omitempty"`
	Wrap        []string      `json:"wrap,omitempty"`     // command words before the program
	InScope     bool          `json:"in_scope,omitempty"` // a systemd scope holds the limits
	TimeScale   int           `json:"stretch,omitempty"`  // process.TimeScale
}

// Ready is the supervisor's only answer to its order.
type Ready struct {
	Record *record.Record `json:"record,omitempty"`
	Fail   *Fail          `json:"fail,omitempty"`
}

// Fail is why a start failed: a message, and an error on both ends.
type Fail struct { //nolint:errname // primarily a message
	Kind    FailKind `json:"kind"`
	Message string   `json:"message"`
}

// FailKind classifies failed starts by what the caller can do.
type FailKind string

// The kinds of failed starts.
const (
	FailNotFound      FailKind = "not_found"      // no such program
	FailNotExecutable FailKind = "not_executable" // it exists and cannot be executed
	FailWorkdir       FailKind = "workdir"        // the working directory cannot be entered
	FailSoftLimit     FailKind = "soft_limit"     // a hard limit was required and is not available
	FailIsolation     FailKind = "isolation"      // this kind of isolation is not permitted here
	FailDisk          FailKind = "disk"           // no space for what a sandbox has to write
	FailLauncher      FailKind = "launcher"       // anything else
)

// Error is the message.
func (f *Fail) Error() string { return f.Message }

// AsFail turns any error into a Fail.
func AsFail(err error) *Fail {
	if f, ok := errors.AsType[*Fail](err); ok {
		return f
	}
	kind := FailLauncher
	if record.IsDiskFull(err) {
		kind = FailDisk
	}
	return &Fail{Kind: kind, Message: err.Error()}
}

// StubOrder is the supervisor's order to a stub.
type StubOrder struct {
	Argv          []string        `json:"argv"`
	Wrap          []string        `json:"wrap,omitempty"`
	Env           []string        `json:"env"`
	Dir           string          `json:"dir"`
	Cgroup        json.RawMessage `json:"cgroup,omitempty"`     // to be reopened, and joined by the program
	Isolated      bool            `json:"isolated"`             // the stub is PID 1 of its own namespace
	DataBytes     int64           `json:"data_bytes,omitempty"` // RLIMIT_DATA of each program; 0 = none
	OOMScoreAdj   int             `json:"oom_score_adj,omitempty"`
	Proof         string          `json:"proof,omitempty"`  // the file that a stub without a namespace writes once its supervisor is dead and its tree empty
	KeepAfterExit bool            `json:"linger,omitempty"` // the stub and remaining processes stay when the program has ended
}

// StubReport is a report of the stub. One of the fields is set.
type StubReport struct {
	Started *Started `json:"started,omitempty"`
	Fail    *Fail    `json:"fail,omitempty"`
	Exited  *Exited  `json:"exited,omitempty"`
}

// Started is the PID of the program in the stub's namespace.
type Started struct {
	PID int `json:"pid"`
}

// Exited is the end of a program.
type Exited struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"` // 0 = it returned Code
	Killed int `json:"killed,omitempty"` // remaining processes that the stub had to kill
}

// Exec is a client's command for a stub; its three streams are sent as descriptors with the
// message.
type Exec struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"` // added to the sandbox's own
	Dir  string   `json:"dir,omitempty"`
	TTY  bool     `json:"tty,omitempty"`
}

// maxMessage limits one message: the kernel limits command line and environment to 2 MiB, which
// JSON may double.
const maxMessage = 8 << 20

// Write sends one message.
func Write(w io.Writer, message any) error {
	raw, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// Reader reads messages from one stream.
type Reader struct{ lines *bufio.Reader }

// NewReader reads messages from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: bufio.NewReaderSize(io.LimitReader(r, maxMessage), 4<<10)}
}

// Next reads one message; io.EOF when the other side has closed without one.
func (r *Reader) Next(message any) error {
	line, err := r.lines.ReadBytes('\n')
	if err != nil {
		if errors.Is(err, io.EOF) && len(line) > 0 {
			return fmt.Errorf("%w after %d bytes of a message", io.ErrUnexpectedEOF, len(line))
		}
		return err
	}
	return json.Unmarshal(line, message)
}

// File opens one of the agreed descriptors and sets close-on-exec.
func File(fd int, name string) *os.File {
	closeOnExec(fd)
	return os.NewFile(uintptr(fd), name)
}
