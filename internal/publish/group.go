package publish

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"sbx/internal/fault"
)

// pipeDrain is how long output is still read after a program has ended. A child in a
// session of its own may hold the pipe for ever.
const pipeDrain = time.Second

// runGroup runs cmd in a process group of its own until the whole group has ended. The end
// of ctx sends TERM to the group and KILL after grace; the error is then ctx's cause. When
// the program has ended, the rest of its group is killed.
func runGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	cmd.SysProcAttr, cmd.WaitDelay = ownGroup(), pipeDrain
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := cmd.Start(); err != nil {
		return fault.New(fault.KindLauncher, "cannot start it: %w", err)
	}
	ended, interrupted := make(chan struct{}), make(chan bool, 1)
	go func() { interrupted <- endGroup(ctx, cmd.Process.Pid, grace, ended) }()
	err := cmd.Wait()
	close(ended)
	switch {
	case <-interrupted:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // it ended well; a child in another group held its output
	}
	return err
}

// endGroup ends the group when ctx ends, and what is left of it when the leader has ended.
// It reports whether ctx was the reason, also for a program that exits 0 after TERM.
func endGroup(ctx context.Context, leader int, grace time.Duration, ended <-chan struct{}) bool {
	interrupted := false
	select {
	case <-ended:
	case <-ctx.Done():
		interrupted = true
		terminateGroup(leader)
		awaitGroup(leader, grace, ended)
	}
	killGroup(leader)
	return interrupted
}

// awaitGroup waits until the group is empty, at most grace.
func awaitGroup(leader int, grace time.Duration, ended <-chan struct{}) {
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-limit.C:
		return
	case <-ended:
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for groupLives(leader) {
		select {
		case <-limit.C:
			return
		case <-look.C:
		}
	}
}
