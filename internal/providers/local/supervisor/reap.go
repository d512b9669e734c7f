//go:build unix

package supervisor

import (
	"context"
	"errors"
	"syscall"
	"time"

	"sbx/internal/providers/local/identity"
)

// killStub ends the stub, and with it everything in its namespace.
func (s *supervisor) killStub() {
	s.stub.life.Close()
	if s.stub.handle != nil {
		_ = s.stub.handle.Signal(syscall.SIGKILL) // reaping it is the proof
		return
	}
	_ = s.stub.process.Signal(syscall.SIGKILL) // reaping it is the proof
}

// reapAll kills and reaps until this process has no child left. Since orphans
// of the tree fall to this process, no child left means no tree left.
func (s *supervisor) reapAll(ctx context.Context) {
	for pause := time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 50*time.Millisecond) {
		for {
			pid, _, left := waitAny(false)
			if !left {
				return
			}
			if pid == 0 {
				break
			}
		}
		endDescendants(ctx, s.self.PID)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// endDescendants kills everything below a process, a forking program too: who
// is found is stopped first. It returns how many there were.
func endDescendants(ctx context.Context, pid int) int {
	met, _ := identity.Host().End(ctx, func() ([]identity.Stat, error) { return identity.Host().Descendants(pid) }) // callers look again whether anything is left
	return met
}

// waitAny reaps one child; false when there is none left.
func waitAny(block bool) (pid int, status syscall.WaitStatus, left bool) {
	options := syscall.WNOHANG
	if block {
		options = 0
	}
	for {
		pid, err := syscall.Wait4(-1, &status, options, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, 0, false
		}
		return pid, status, true
	}
}
