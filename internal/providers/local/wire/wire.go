// Package wire is what the processes of one local sandbox say to each other:
// the client orders a supervisor, the supervisor orders a stub, the stub
// reports, and commands reach a running sandbox over a socket.
//
// Messages are JSON, one a line, and tolerant of unknown fields, because an
// upgraded sbx talks to supervisors that an older one started. No process is
// started in this room.
package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"sbx/internal/providers/local/record"
)

// The hidden first arguments under which the binary becomes a supervisor or a
// stub. They are looked at before any flag or configuration work.
const (
	SupervisorArg = "__sbx-supervisor"
	StubArg       = "__sbx-stub"
)

// MarkerKey is the environment variable that every process of a sandbox
// inherits; its value is the sandbox's id. Leftovers without a cgroup are found
// by it.
const MarkerKey = "SBX_SANDBOX_ID"

// The descriptors that a supervisor starts with, after the three standard ones;
// its order arrives on standard input.
const (
	SupervisorReadyFD = 3 // where it says Ready
	SupervisorLockFD  = 4 // the sandbox's lock, already held
)

// The descriptors that a stub starts with; standard output and error are the
// program's.
const (
	StubOrderFD  = 3
	StubReportFD = 4
	StubSocketFD = 5 // listens for commands
	StubLifeFD   = 6 // ends when the supervisor does
)

// Order is what the client wants started.
type Order struct {
	Root        string        `json:"root"`   // of the record store
	Record      record.Record `json:"record"` // as far as the client knows it
	Env         []string      `json:"env"`    // KEY=VALUE, complete
	RequireHard bool          `json:"require_hard,omitempty"`
	Wrap        []string      `json:"wrap,omitempty"`     // command words before the program
	InScope     bool          `json:"in_scope,omitempty"` // a systemd scope holds the limits
}

// Ready is the supervisor's one answer to its order.
type Ready struct {
	Record *record.Record `json:"record,omitempty"`
	Fail   *Fail          `json:"fail,omitempty"`
}

// Fail says why something could not be started. It travels as a message and is
// an error on both ends.
type Fail struct { //nolint:errname // a message first
	Kind    FailKind `json:"kind"`
	Message string   `json:"message"`
}

// FailKind sorts failed starts by what the caller can do about them.
type FailKind string

// The kinds of failed starts.
const (
	FailNotFound      FailKind = "not_found"      // no such program
	FailNotExecutable FailKind = "not_executable" // there, but it cannot run
	FailWorkdir       FailKind = "workdir"        // the working directory cannot be entered
	FailSoftLimit     FailKind = "soft_limit"     // a hard limit was required and cannot be had
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
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		kind = FailDisk
	}
	return &Fail{Kind: kind, Message: err.Error()}
}

// StubOrder is what the supervisor wants run.
type StubOrder struct {
	Argv        []string        `json:"argv"`
	Wrap        []string        `json:"wrap,omitempty"`
	Env         []string        `json:"env"`
	Dir         string          `json:"dir"`
	Cgroup      json.RawMessage `json:"cgroup,omitempty"`     // to be reopened and joined by the program
	Isolated    bool            `json:"isolated"`             // the stub is PID 1 of a namespace of its own
	DataBytes   int64           `json:"data_bytes,omitempty"` // RLIMIT_DATA of each program; 0 = none
	OOMScoreAdj int             `json:"oom_score_adj,omitempty"`
	Proof       string          `json:"proof,omitempty"`  // the file that a stub without a namespace writes once its supervisor is dead and nothing of its tree is left
	Linger      bool            `json:"linger,omitempty"` // the stub stays when the program has ended, and so does what that left behind
}

// StubReport is what the stub saw. One of the fields is set.
type StubReport struct {
	Started *Started `json:"started,omitempty"`
	Fail    *Fail    `json:"fail,omitempty"`
	Exited  *Exited  `json:"exited,omitempty"`
}

// Started says under which PID, in the stub's own counting, the program runs.
type Started struct {
	PID int `json:"pid"`
}

// Exited is how a program ended.
type Exited struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"` // 0 = it returned Code
	Killed int `json:"killed,omitempty"` // how many leftovers the stub had to kill
}

// Exec asks a stub to run one more command; its three streams travel beside
// the message as descriptors.
type Exec struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"` // added to the sandbox's own
	Dir  string   `json:"dir,omitempty"`
	TTY  bool     `json:"tty,omitempty"`
}

// maxMessage bounds one message: a command line and environment fit in the
// kernel's own limit of 2 MiB, JSON may double it.
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

// Next reads one message; io.EOF when the other side is gone without one.
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

// File opens one of the agreed descriptors. It is closed on exec: what a stub
// or program starts with is passed on purpose, never leaked.
func File(fd int, name string) *os.File {
	closeOnExec(fd)
	return os.NewFile(uintptr(fd), name)
}
