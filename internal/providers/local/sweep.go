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

	"sbx/internal/providers"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// overdue is how far past its time a sandbox must be before its supervisor
// counts as hung.
const overdue = 30 * time.Second

// halfMade is how old a folder without a record must be before nobody can be
// about to write one.
const halfMade = time.Minute

// Sweep brings to an end what dead supervisors left, ends what is overdue, and
// drops ended records that no longer stay. It looks at locks, not at records,
// so that a machine with hundreds of sandboxes pays microseconds for each.
func (c *Client) Sweep(ctx context.Context) (providers.Swept, error) {
	var swept providers.Swept
	ids, err := c.store.IDs()
	if err != nil { // the verb that follows fails for the same reason, with its own words
		return swept, nil //nolint:nilerr // reported by List and Get
	}
	var failed []error
	var finished []string
	for id, seen := range together(ids, c.glance) {
		if !seen.unfinished {
			finished = append(finished, id)
			continue
		}
		done, err := c.sweepOne(ctx, id, seen)
		if err != nil {
			failed = append(failed, c.trouble("sweep "+id, err))
		}
		if done {
			swept.Refs = append(swept.Refs, sandbox.Ref{Provider: c.name, ID: id})
		}
	}
	failed = append(failed, c.prune(finished), c.trouble("sweep", c.tidyGroups()))
	return swept, errors.Join(failed...)
}

// glance is what a sandbox's lock tells without its record.
type glance struct {
	unfinished bool
	held       bool
	due        time.Time // it cannot be overdue before
	err        error
}

func (c *Client) glance(id string) (g glance) {
	if g.due, g.unfinished = c.store.Due(id); g.unfinished {
		g.held, g.err = c.store.Held(id)
	}
	return g
}

// sweepOne looks after one unfinished folder; true when it brought a record to
// its end. A living supervisor whose time is not over needs no look at its
// record.
func (c *Client) sweepOne(ctx context.Context, id string, seen glance) (bool, error) {
	if seen.err != nil || (seen.held && c.now().Sub(seen.due) <= overdue) {
		return false, seen.err
	}
	r, err := c.store.Read(id)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !seen.held:
		return false, c.dropHalfMade(id)
	case err != nil: // garbage is for a human to look at; List reports it
		return false, nil //nolint:nilerr // reported by List
	case r.Newer():
		return false, nil
	case seen.held && c.isOverdue(r):
		return true, ignoreEnded(c.Terminate(ctx, id, providers.TerminateOptions{By: "sweep: overdue"}))
	case seen.held:
		return false, nil
	}
	return c.bury(ctx, r)
}

// isOverdue says that a living supervisor let its sandbox's time pass. Where the
// machine can tell, its own age decides: a wall clock that was set forward makes
// no sandbox overdue.
func (c *Client) isOverdue(r record.Record) bool {
	if r.ExpiresAt.IsZero() || c.now().Sub(r.ExpiresAt) <= overdue {
		return false
	}
	age, known := c.age(r.Supervisor)
	return !known || age > time.Duration(r.Limits.TTLSeconds*float64(time.Second))+overdue
}

// bury ends what a dead supervisor left of a sandbox and completes its record.
// Whoever gets the lock does it; the others wait for nothing. False when there
// was nothing to bury: somebody else did, or the supervisor came to its own end
// between two looks.
func (c *Client) bury(ctx context.Context, r record.Record) (bool, error) {
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
	exit := c.abandoned(r.ID)
	exit.At, exit.Emptied, exit.Unproven = &at, proof, proof == ""
	c.postMortem(r, &exit)
	r.Close(exit)
	r.EndedAt, r.State = at, r.EndState()
	detail := "its supervisor was lost"
	if exit.Stop != nil {
		detail = "ended over the head of a hung supervisor"
	}
	r.Note(at, string(r.State), detail)
	if err := c.store.Write(r); err != nil {
		return false, err
	}
	return true, c.store.Finish(r.ID)
}

// abandoned is how a sandbox ended whose supervisor is gone without a last record: by
// whoever asked for it, else lost.
func (c *Client) abandoned(id string) record.Exit {
	if stop, err := c.store.Stop(id); err == nil && stop != nil {
		return record.Exit{Stop: stop, Signal: int(syscall.SIGKILL)}
	}
	return record.Exit{SupervisorLost: true}
}

// postMortem reads the counters of a cgroup that outlived its supervisor, then
// removes it.
func (c *Client) postMortem(r record.Record, exit *record.Exit) {
	group, err := cgroup.ReopenRecorded(r.Cgroup)
	if err != nil {
		return
	}
	stats := group.Stats()
	exit.OOMKills, exit.PeakBytes, exit.CPUSeconds, exit.CounterSource = stats.OOMKills, stats.PeakBytes, stats.CPUSeconds, stats.Source
	if err := group.Remove(); err != nil {
		c.deps.Notice("local: " + r.ID + ": its cgroup could not be removed: " + err.Error())
	}
}

// killTree ends every process of a sandbox without its supervisor's help: by
// cgroup, by the stub whose namespace dies with it, and by the marker in the
// environment for what forked away from both. It gives the proof that nothing is
// left; "" where only the marker was looked for: a process that forked away and
// cleaned its environment is not seen.
func (c *Client) killTree(ctx context.Context, r record.Record) (proof string, err error) {
	if group, err := cgroup.ReopenRecorded(r.Cgroup); err == nil {
		if _, err := group.Kill(ctx); err != nil {
			return "", err
		}
		proof = "no process is left in its control group"
	}
	if !isolated(r) {
		c.awaitStub(ctx, r)
	}
	for _, p := range []identity.Process{r.Stub, r.Program} {
		if err := killVerified(ctx, p); err != nil {
			return "", err
		}
	}
	switch {
	case proof != "":
	case isolated(r):
		proof = "its namespace ended with its first process"
	case c.store.Proved(r.ID):
		proof = "its stub ended all that was left"
	}
	return proof, c.killMarked(ctx, r.ID)
}

// isolated says that the sandbox's processes cannot outlive its stub.
func isolated(r record.Record) bool {
	return r.Limits.Isolation != "" && r.Limits.Isolation != "none" && r.Stub.PID > 0
}

// awaitStub gives a stub without a namespace the time to end what it adopted: it
// does so when its supervisor is gone.
func (c *Client) awaitStub(ctx context.Context, r record.Record) {
	if alive, err := r.Supervisor.Alive(); r.Stub.PID <= 0 || err != nil || alive {
		return
	}
	h, err := identity.Open(r.Stub)
	if err != nil {
		return
	}
	defer h.Close()
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = h.Wait(limit) // one that does not end is killed next, and leaves no proof
}

// blink is longer than an exec, during which a process shows no environment.
const blink = 5 * time.Millisecond

// killMarked ends what carries the sandbox's mark, until two looks in a row
// find nobody.
func (c *Client) killMarked(ctx context.Context, id string) error {
	for empty := 0; empty < 2; {
		left, err := c.marked(id)
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(blink):
		}
	}
	return nil
}

// killVerified ends exactly the recorded process; a number that belongs to
// somebody else by now is left alone.
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
		return nil // dead is what it should be
	}
	return h.Wait(ctx)
}

// marked takes hold of every process that carries the sandbox's marker.
func (c *Client) marked(id string) ([]*identity.Handle, error) {
	found, err := identity.Host().Marked(wire.MarkerKey, id)
	if err != nil {
		return nil, ignoreUnsupported(err)
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

func ignoreUnsupported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// dropHalfMade removes a folder that a create did not get beyond.
func (c *Client) dropHalfMade(id string) error {
	info, err := os.Stat(c.store.Dir(id))
	if err != nil || c.now().Sub(info.ModTime()) < halfMade {
		return ignoreGone(err)
	}
	return c.store.Remove(id)
}

// prune drops ended records that no longer stay, older than 24 h or beyond the
// newest 200, and the folders of starts that did not get as far as a record.
func (c *Client) prune(ids []string) error {
	var ended []record.Ended
	var failed []error
	for _, id := range ids {
		if e, ok := c.store.EndedAt(id); ok {
			ended = append(ended, e)
		} else if !c.store.Unfinished(id) { // neither lock nor record
			failed = append(failed, c.dropHalfMade(id))
		}
	}
	for e := range slices.Values(record.Expired(ended, c.now())) {
		failed = append(failed, c.store.Remove(e.ID))
	}
	return c.trouble("prune "+filepath.Base(c.store.Root), errors.Join(failed...))
}

func ignoreEnded(err error) error {
	if err == nil || isGone(err) {
		return nil
	}
	return err
}
