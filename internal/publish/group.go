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
	ended, ending := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ending)
		endGroup(ctx, cmd.Process.Pid, grace, ended)
	}()
	err := cmd.Wait()
	close(ended)
	<-ending
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well; somebody else's child held its output
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// endGroup ends what runs when ctx ends, and what is left when the leader has ended.
func endGroup(ctx context.Context, leader int, grace time.Duration, ended <-chan struct{}) {
	select {
	case <-ended:
	case <-ctx.Done():
		terminateGroup(leader)
		awaitGroup(leader, grace, ended)
	}
	killGroup(leader)
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
