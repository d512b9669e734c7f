package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrAlive says that processes were left when the context ended.
var ErrAlive = errors.New("processes are left in the control group")

// The pauses between two looks at a v1 group, which announces nothing.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Kill ends every process of the group and waits until none is left. It returns
// how many different processes it saw. Killing an empty or removed group is not
// an error. When ctx ends first the error wraps ErrAlive and the context's.
func (g *Group) Kill(ctx context.Context) (int, error) {
	seen, err := g.PIDs()
	if err != nil {
		return 0, err
	}
	if d, ok := g.unified(); ok {
		if err := g.killUnified(ctx, d, len(seen)); err != nil {
			return len(seen), err
		}
	}
	return g.sweep(ctx, seen)
}

// killUnified lets the kernel kill the whole tree at once. A kernel before 5.14
// has no cgroup.kill; the sweep does it then.
func (g *Group) killUnified(ctx context.Context, d Dir, seen int) error {
	err := g.tree.write(path.Join(d.Path, "cgroup.kill"), "1")
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill control group: %w", err)
	}
	return g.alive(g.awaitKey(ctx, d, "populated 0"), seen)
}

// awaitKey waits until cgroup.events has the line, or the group is gone.
func (g *Group) awaitKey(ctx context.Context, d Dir, line string) error {
	err := awaitEvent(ctx, path.Join(d.Path, "cgroup.events"), func(text string) bool {
		return slices.Contains(strings.Split(text, "\n"), line)
	})
	if gone(err) {
		return nil
	}
	return err
}

// sweep kills what is left by signals: all there is under v1, stragglers
// otherwise. Forks are refused first and the members frozen during a round, so
// that a program that forks all the time cannot outrun it.
func (g *Group) sweep(ctx context.Context, seen []int) (int, error) {
	pause := firstPause
	for {
		pids, err := g.PIDs()
		if err != nil {
			return len(seen), err
		}
		seen = union(seen, pids)
		if len(pids) == 0 {
			return len(seen), nil
		}
		if err := g.strike(); err != nil {
			return len(seen), err
		}
		if err := wait(ctx, pause); err != nil {
			return len(seen), g.alive(err, len(pids))
		}
		pause = min(2*pause, lastPause)
	}
}

// strike is one round of the sweep. Members are thawed in every case: the
// frozen cannot die.
func (g *Group) strike() error {
	if d, ok := g.with("pids"); ok && !d.Borrowed {
		_ = g.tree.write(path.Join(d.Path, "pids.max"), "0") // best effort: rounds without it only take longer
	}
	_ = g.setFrozen(true)
	_, err := g.Signal(syscall.SIGKILL)
	return errors.Join(err, ignoreUnsupported(g.setFrozen(false)))
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// alive names a wait that was cut short.
func (g *Group) alive(err error, left int) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %d seen in %s: %w", ErrAlive, left, g.state.ID, err)
	}
	return err
}

func union(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// wait pauses, and is cut short by the context.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return ctx.Err()
	}
}
