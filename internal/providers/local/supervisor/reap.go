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

// stubLimit bounds the wait for a killed stub, which goes in a moment unless
// the kernel cannot end somebody in its namespace yet.
const stubLimit = 100 * time.Millisecond

// awaitStub gives the kernel the moment that it needs: a search for who is left
// costs more, and finds nobody once the stub is dead.
func (s *supervisor) awaitStub(ctx context.Context) {
	if s.stub.handle == nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, stubLimit)
	defer done()
	_ = s.stub.handle.Wait(ctx) // reaping is the proof
}

// reapAll kills and reaps until this process has no child left; false when ctx
// ends before. Since orphans of the tree fall to this process, no child left
// means no tree left.
func (s *supervisor) reapAll(ctx context.Context) bool {
	for pause := time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 50*time.Millisecond) {
		for {
			pid, _, left := waitAny(false)
			if !left {
				return true
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
	return false
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
