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

	"sbx/internal/poll"
)

// ErrAlive says that processes remained when the context ended.
var ErrAlive = errors.New("processes are left in the control group")

// The pauses between two reads of a v1 group, which has no events.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Kill ends every process of the group and waits until none is left. It returns how many
// different processes it saw. Killing an empty or removed group is not an error. When ctx
// ends first the error wraps ErrAlive and the context's.
func (g *Group) Kill(ctx context.Context) (int, error) {
	seen, err := g.PIDs()
	if err != nil {
		return 0, err
	}
	if d, ok := g.unifiedDir(); ok {
		if err := g.killUnified(ctx, d, len(seen)); err != nil {
			return len(seen), err
		}
	}
	return g.killMembers(ctx, seen)
}

// killUnified makes the kernel kill the whole tree at once. A kernel before 5.14 has no
// cgroup.kill; killMembers does it then.
func (g *Group) killUnified(ctx context.Context, d Dir, seen int) error {
	err := g.tree.writeFile(path.Join(d.Path, "cgroup.kill"), "1")
	if noSuchGroup(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill control group: %w", err)
	}
	return g.asErrAlive(g.awaitKey(ctx, d, "populated 0"), seen)
}

// awaitKey waits until cgroup.events has the line, or the group is removed.
func (g *Group) awaitKey(ctx context.Context, d Dir, line string) error {
	err := awaitEvent(ctx, path.Join(d.Path, "cgroup.events"), func(text string) bool {
		return slices.Contains(strings.Split(text, "\n"), line)
	})
	if noSuchGroup(err) {
		return nil
	}
	return err
}

// killMembers kills the remaining processes by signals: all of them under v1, stragglers
// otherwise. New processes are refused and the members frozen during a round, so that a fork
// bomb cannot outrun it.
func (g *Group) killMembers(ctx context.Context, seen []int) (int, error) {
	for pauses := poll.NewBackoff(firstPause, lastPause); ; {
		pids, err := g.PIDs()
		if err != nil {
			return len(seen), err
		}
		seen = slices.Concat(seen, pids)
		slices.Sort(seen)
		seen = slices.Compact(seen)
		if len(pids) == 0 {
			return len(seen), nil
		}
		if err := g.killRound(); err != nil {
			return len(seen), err
		}
		if pauses.Sleep(ctx) != nil {
			return len(seen), g.asErrAlive(ctx.Err(), len(pids))
		}
	}
}

// killRound is one round of killMembers. Members are thawed in every case: frozen processes
// cannot die.
func (g *Group) killRound() error {
	if d, ok := g.dirWith("pids"); ok && !d.Borrowed {
		_ = g.tree.writeFile(path.Join(d.Path, "pids.max"), "0") // without it more rounds are needed
	}
	_ = g.requestFrozen(true)
	_, err := g.Signal(syscall.SIGKILL)
	if thaw := g.requestFrozen(false); !errors.Is(thaw, errors.ErrUnsupported) {
		err = errors.Join(err, thaw)
	}
	return err
}

// asErrAlive wraps the error of a wait that the context ended.
func (g *Group) asErrAlive(err error, left int) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %d seen in %s: %w", ErrAlive, left, g.state.ID, err)
	}
	return err
}

// requestFrozen requests the change and does not wait for it.
func (g *Group) requestFrozen(frozen bool) error {
	file, value := "", ""
	if d, ok := g.unifiedDir(); ok {
		file, value = path.Join(d.Path, "cgroup.freeze"), "0"
		if frozen {
			value = "1"
		}
	} else if d, ok := g.dirWith("freezer"); ok {
		file, value = path.Join(d.Path, "freezer.state"), "THAWED"
		if frozen {
			value = "FROZEN"
		}
	}
	if file == "" {
		return fmt.Errorf("freeze %s: %w", g.state.ID, errors.ErrUnsupported)
	}
	if err := g.tree.writeFile(file, value); err != nil && !noSuchGroup(err) {
		return err
	}
	return nil
}
