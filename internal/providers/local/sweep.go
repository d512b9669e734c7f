package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// overdueAfter is how far past its expiry a sandbox must be before its supervisor counts as hung.
const overdueAfter = 30 * time.Second

// halfMadeAge is the age of a folder without a record from which no create can still be about
// to write one.
const halfMadeAge = time.Minute

// Sweep finishes what dead supervisors left, ends overdue sandboxes, removes those that are tied to
// a process that is gone, and deletes expired records. It checks locks, not records, so that it takes microseconds for each of hundreds
// of sandboxes.
func (c *Client) Sweep(ctx context.Context) (providers.Swept, error) {
	var swept providers.Swept
	tied, tiedErr := c.removeTied(ctx)
	swept.Tied = tied
	ids, err := c.store.IDs()
	if err != nil { // the command that follows fails for the same reason
		return swept, nil //nolint:nilerr // reported by List and Get
	}
	failed := []error{tiedErr}
	var finished []string
	for id, seen := range readInOrder(ids, c.readLockState) {
		if !seen.unfinished {
			finished = append(finished, id)
			continue
		}
		done, err := c.sweepOne(ctx, id, seen)
		if err != nil {
			failed = append(failed, c.classifyError("sweep "+id, err))
		}
		if done {
			swept.Refs = append(swept.Refs, sandbox.Ref{Provider: c.name, ID: id})
		}
	}
	failed = append(failed, c.pruneEnded(finished), c.classifyError("sweep", c.tidyGroups()))
	return swept, errors.Join(failed...)
}

// lockState is what a sandbox's lock shows without its record.
type lockState struct {
	unfinished bool
	held       bool
	due        time.Time // it is not overdue before
	err        error
}

func (c *Client) readLockState(id string) (g lockState) {
	if g.due, g.unfinished = c.store.Due(id); g.unfinished {
		g.held, g.err = c.store.Held(id)
	}
	return g
}

// sweepOne handles one unfinished folder; true when it completed a record. The record of a
// living supervisor that is not overdue is not read.
func (c *Client) sweepOne(ctx context.Context, id string, seen lockState) (bool, error) {
	if seen.err != nil || (seen.held && c.now().Sub(seen.due) <= overdueAfter) {
		return false, seen.err
	}
	r, err := c.store.Read(id)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !seen.held:
		return false, c.removeHalfMade(id)
	case err != nil: // an unreadable record is left to the operator
		return false, nil //nolint:nilerr // reported by List
	case r.Newer():
		return false, nil
	case seen.held && c.isOverdue(r):
		err := c.Terminate(ctx, id, providers.TerminateOptions{By: "sweep: overdue"})
		if fault.KindOf(err) == fault.KindGone {
			err = nil
		}
		return true, err
	case seen.held:
		return false, nil
	}
	return c.finishAbandoned(ctx, r)
}

// isOverdue reports whether a living supervisor missed its sandbox's expiry. Where possible,
// the supervisor's own age decides: a wall clock that was set forward makes no sandbox
// overdue.
func (c *Client) isOverdue(r record.Record) bool {
	if r.ExpiresAt.IsZero() || c.now().Sub(r.ExpiresAt) <= overdueAfter {
		return false
	}
	age, known := c.age(r.Supervisor)
	return !known || age > time.Duration(r.Limits.TTLSeconds*float64(time.Second))+overdueAfter
}

// finishAbandoned ends what a dead supervisor left of a sandbox and completes its record.
// The process that gets the lock does it; others do not wait. False when there was nothing to
// do: another process did it, or the supervisor itself ended meanwhile.
func (c *Client) finishAbandoned(ctx context.Context, r record.Record) (bool, error) {
	lock, got, err := c.store.TryLock(r.ID)
	if err != nil || !got {
		return false, ignoreGone(err)
	}
	defer lock.Close()
	if r, err = c.store.Read(r.ID); err != nil {
		return false, ignoreGone(err)
	}
	if r.State.Ended() && !r.MayRun() {
		return false, c.store.Finish(r.ID)
	}
	proof, err := c.killTree(ctx, r)
	if err != nil {
		return false, err
	}
	at := c.now().UTC()
	exit := c.abandonedExit(r.ID)
	exit.At, exit.Emptied, exit.Unproven = &at, proof, proof == ""
	c.postMortem(r, &exit)
	r.Close(exit)
	r.EndedAt, r.State = at, r.EndState()
	detail := "its supervisor was lost"
	if exit.Stop != nil {
		detail = "terminated without its supervisor, which hangs"
	}
	r.Note(at, string(r.State), detail)
	if err := c.store.Write(r); err != nil {
		return false, err
	}
	return true, c.store.Finish(r.ID)
}

// abandonedExit is the exit of a sandbox whose supervisor is gone without a last record: the
// recorded stop request, else lost.
func (c *Client) abandonedExit(id string) record.Exit {
	if stop, err := c.store.Stop(id); err == nil && stop != nil {
		return record.Exit{Stop: stop, Signal: int(syscall.SIGKILL)}
	}
	return record.Exit{SupervisorLost: true}
}

// postMortem reads the counters of a cgroup that outlived its supervisor, then removes the
// cgroup.
func (c *Client) postMortem(r record.Record, exit *record.Exit) {
	group, err := cgroup.ReopenRecorded(r.Cgroup)
	if err != nil {
		return
	}
	stats := group.Stats()
	exit.TasksRefused = stats.Refused
	exit.OOMKills, exit.PeakBytes, exit.CPUSeconds, exit.CounterSource = stats.OOMKills, stats.PeakBytes, stats.CPUSeconds, stats.Source
	if err := group.Remove(); err != nil {
		c.deps.Notice("local: " + r.ID + ": its cgroup could not be removed: " + err.Error())
	}
}

// killTree ends every process of a sandbox without its supervisor: by cgroup, by the stub
// whose namespace ends with it, and by the marker in the environment for processes that
// forked away from both. It returns the proof that none is left; "" where only the marker was
// searched: a process that forked away and cleared its environment is not found.
func (c *Client) killTree(ctx context.Context, r record.Record) (proof string, err error) {
	if group, err := cgroup.ReopenRecorded(r.Cgroup); err == nil {
		if _, err := group.Kill(ctx); err != nil {
			return "", err
		}
		proof = "no process is left in its control group"
	}
	if !hasNamespace(r) {
		c.awaitStub(ctx, r)
	}
	for _, p := range []identity.Process{r.Stub, r.Program} {
		if err := killVerified(ctx, p); err != nil {
			return "", err
		}
	}
	switch {
	case proof != "":
	case hasNamespace(r):
		proof = "its namespace ended with its first process"
	case c.store.Proved(r.ID):
		proof = "its stub ended all remaining processes"
	}
	return proof, c.killMarked(ctx, r.ID)
}

// hasNamespace reports whether the sandbox's processes cannot outlive its stub.
func hasNamespace(r record.Record) bool {
	return r.Limits.Isolation != "" && r.Limits.Isolation != "none" && r.Stub.PID > 0
}

// awaitStub gives a stub without a namespace the time to end the processes that it adopted:
// it does so when its supervisor is gone.
func (c *Client) awaitStub(ctx context.Context, r record.Record) {
	if alive, err := r.Supervisor.Alive(); r.Stub.PID <= 0 || err != nil || alive {
		return
	}
	h, err := identity.Open(r.Stub)
	if err != nil {
		return
	}
	defer h.Close()
	limit, cancel := context.WithTimeout(ctx, c.deps.TimeScale.Limit(hangLimit))
	defer cancel()
	_ = h.Wait(limit) // a stub that does not end is killed next, without a proof
}

// execWindow is longer than an exec, during which a process shows no environment.
const execWindow = 5 * time.Millisecond

// killMarked ends the processes with the sandbox's marker, until two searches in a row find
// none.
func (c *Client) killMarked(ctx context.Context, id string) error {
	for empty := 0; empty < 2; {
		left, err := c.openMarked(id)
		if err != nil {
			return err
		}
		if empty++; len(left) > 0 {
			empty = 0
		}
		for _, h := range left {
			err = errors.Join(err, h.Signal(syscall.SIGKILL), h.Wait(ctx), h.Close())
		}
		if err != nil && !errors.Is(err, identity.ErrDead) {
			return err
		}
		if poll.Sleep(ctx, execWindow) != nil {
			return ctx.Err()
		}
	}
	return nil
}

// killVerified ends exactly the recorded process, and no process that has its PID now.
func killVerified(ctx context.Context, p identity.Process) error {
	if p.PID <= 0 {
		return nil
	}
	h, err := identity.Open(p)
	if errors.Is(err, identity.ErrDead) || errors.Is(err, identity.ErrForeign) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Signal(syscall.SIGKILL); err != nil {
		return nil // it is dead already
	}
	return h.Wait(ctx)
}

// openMarked opens every process that has the sandbox's marker.
func (c *Client) openMarked(id string) ([]*identity.Handle, error) {
	found, err := identity.Host().Marked(wire.MarkerKey, id)
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			err = nil
		}
		return nil, err
	}
	var handles []*identity.Handle
	for _, s := range found {
		if s.Dead() || s.PID == os.Getpid() {
			continue
		}
		h, err := identity.OpenWhere(s.PID, func() bool { return identity.Host().IsMarked(s.PID, wire.MarkerKey, id) })
		if err == nil {
			handles = append(handles, h)
		}
	}
	return handles, nil
}

// removeHalfMade removes the folder of a create that did not finish.
func (c *Client) removeHalfMade(id string) error {
	info, err := os.Stat(c.store.Dir(id))
	if err != nil || c.now().Sub(info.ModTime()) < halfMadeAge {
		return ignoreGone(err)
	}
	return c.store.Remove(id)
}

// pruneEnded deletes ended records that are older than 24 h or beyond the newest 200, and the
// folders of starts without a record.
func (c *Client) pruneEnded(ids []string) error {
	var ended []record.Ended
	var failed []error
	for _, id := range ids {
		if e, ok := c.store.EndedAt(id); ok {
			ended = append(ended, e)
		} else if !c.store.Unfinished(id) { // neither lock nor record
			failed = append(failed, c.removeHalfMade(id))
		}
	}
	for e := range slices.Values(record.Expired(ended, c.now())) {
		failed = append(failed, c.store.Remove(e.ID))
	}
	return c.classifyError("prune "+filepath.Base(c.store.Root), errors.Join(failed...))
}

// dropGroup kills and removes the control groups of a sandbox with an unreadable record,
// found by their names.
func (c *Client) dropGroup(ctx context.Context, id string) error {
	return c.eachStray(func(other string) bool { return other != id }, func(g *cgroup.Group) error {
		if _, err := g.Kill(ctx); err != nil {
			return err
		}
		return g.Remove()
	})
}

// tidyGroups removes empty control groups of this state folder whose sandbox no longer has a
// folder. A group with processes is kept: a folder may be missing because its volume is not
// mounted, so that its absence proves no orphan.
func (c *Client) tidyGroups() error {
	known := func(id string) bool {
		_, err := os.Lstat(c.store.Dir(id))
		return !errors.Is(err, fs.ErrNotExist)
	}
	return c.eachStray(known, func(g *cgroup.Group) error {
		if empty, err := g.Empty(); err != nil || !empty {
			return err
		}
		return g.Remove()
	})
}

// eachStray calls do for the groups of this state folder that known does not contain.
func (c *Client) eachStray(known func(id string) bool, do func(*cgroup.Group) error) error {
	host, err := cgroup.Detect(c.cgroupRoots(), 0)
	if err != nil {
		return err
	}
	stray, err := cgroup.Orphans(host, known)
	if err != nil {
		return err
	}
	var failed []error
	for _, state := range stray {
		group, err := cgroup.Reopen(state)
		if err == nil {
			err = do(group)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
