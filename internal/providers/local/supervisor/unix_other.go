//go:build unix && !linux

package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"

	"sbx/internal/providers/local/wire"
)

// isolation does not exist here: a sandbox is a process group and what the
// watchdog sees.
type isolation int

const isolateNothing isolation = 0

// String is what `inspect` shows.
func (isolation) String() string { return "none" }

func (isolation) isolated() bool { return false }

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
	return os.StartProcess(self, []string{"sbx", wire.StubArg}, &os.ProcAttr{
		Dir: "/",
		Env: []string{"GOMAXPROCS=1"},
		Files: []*os.File{
			null, p.stdout.child, p.stderr.child,
			wire.StubOrderFD: p.order.child, wire.StubReportFD: p.report.child,
			wire.StubSocketFD: socket, wire.StubLifeFD: p.life.child,
		},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// adoptOrphans: no such thing here; what forks away from its group is lost to
// the supervisor, and doctor says so.
func adoptOrphans() error { return nil }

// hostPID: without namespaces both count alike.
func hostPID(_, inner int) int { return inner }

type placement struct{}

func (*placement) enter(json.RawMessage) error { return nil }

func (*placement) attributes(tty bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: tty, Ctty: 0}
}

func (*placement) settle(int, wire.StubOrder) {}

func settle(bool) error { return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) }

// listen: commands inside a running sandbox are not offered here.
func listen(string) (*os.File, error) { return nil, nil } //nolint:nilnil // no socket is what this system has

func (*stub) serve(*os.File) {}
