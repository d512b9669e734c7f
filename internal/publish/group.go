package publish

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"sbx/internal/fault"
)

// pipeDrain is how long output is still read after a program has ended: a child
// that went into a session of its own may hold the pipe for ever.
const pipeDrain = time.Second

// runGroup runs cmd in a group of its own until it and all of its group have
// ended. The end of ctx sends TERM to the group and KILL after grace. What a
// program leaves running in its group is killed when it has ended itself: after
// runGroup nothing of it can act. The error is ctx's cause when that ended it.
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
		return nil // it ended well; somebody else's child held its output
	}
	return err
}

// endGroup ends what runs when ctx ends, and what is left when the leader has
// ended. It says whether it was ctx: a program that tidies up and exits 0 after
// TERM was interrupted all the same.
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
