//go:build unix && !linux

package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"sbx/internal/providers/local/wire"
)

// isolation does not exist here: a sandbox is a process group with a watchdog.
type isolation int

const isolateNothing isolation = 0

// String is the isolation in `sbx inspect`.
func (isolation) String() string { return "none" }

func (isolation) usesNamespaces() bool { return false }

func isolationLevels() []isolation { return []isolation{isolateNothing} }

func isolationFail(_ isolation, err error) error { return fmt.Errorf("starting the stub: %w", err) }

func startStub(_ isolation, p *stubPipes, socket *os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if socket == nil {
		socket = null
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.StartProcess(self, []string{"sbx", wire.StubArg}, stubAttributes(null, p, socket))
}

// adoptOrphans does nothing: processes that leave their group are lost to the supervisor, as
// doctor reports.
func adoptOrphans() error { return nil }

// hostPID is the same PID: there are no namespaces.
func hostPID(_, inner int) int { return inner }

type placement struct{}

func (*placement) prepareThread(json.RawMessage) error { return nil }

func (*placement) procAttributes(tty bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: tty, Ctty: 0}
}

func (*placement) applyLimits(int, wire.StubOrder) {}

func setUpStub(bool) error { return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) }

// listenSocket opens nothing: commands inside a running sandbox are not supported here.
func listenSocket(string) (*os.File, error) { return nil, nil } //nolint:nilnil // there is no socket

func (*stub) serveCommands(*os.File) {}
