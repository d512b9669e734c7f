package fleet

import (
	"context"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// listingLag is how long a listing may lack a sandbox that was created.
const listingLag = 10 * time.Second

// capacity counts the sandboxes of one profile against the limit of its configuration.
type capacity struct {
	// counting is held while a listing is counted, so that two creates see each other. It
	// is a channel, since waiting for it must be interruptible.
	counting chan struct{}

	mu      sync.Mutex // guards the fields below; never held during a request
	pending int        // creates that have not been answered
	made    map[string]time.Time
}

// lockCounting waits until no other goroutine counts; release must be called.
func (c *capacity) lockCounting(ctx context.Context) (release func(), err error) {
	select {
	case c.counting <- struct{}{}:
		return func() { <-c.counting }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// countTaken adds the sandboxes that no listing shows yet to ids, and returns their number
// with the creates in flight.
func (c *capacity) countTaken(ids map[string]bool, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range c.made {
		if now.Sub(at) > listingLag {
			delete(c.made, id)
		} else {
			ids[id] = true
		}
	}
	return len(ids) + c.pending
}

// countsAgainstLimit reports whether a sandbox counts: it runs, or may run.
func countsAgainstLimit(s sandbox.State) bool {
	switch s {
	case sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminated, sandbox.StateFailed:
		return false
	case sandbox.StateRunning, sandbox.StateProvisioning, sandbox.StateTerminating, sandbox.StateUnknown:
	}
	return true
}

// listOccupied lists the sandboxes of a profile that count against a limit.
func (m *member) listOccupied(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	for s, err := range m.streamRows(ctx, "count", providers.Query{}) {
		if err != nil {
			return nil, err
		}
		if countsAgainstLimit(s.State) {
			ids[s.ID] = true
		}
	}
	return ids, nil
}

func (m *member) limitQuota(ctx context.Context) (providers.Quota, error) {
	ids, err := m.listOccupied(ctx)
	if err != nil {
		return providers.Quota{}, err
	}
	return providers.Quota{
		Name: "max_sandboxes", Scope: "the configuration", Unit: "sandboxes", Used: new(float64(len(ids))), Limit: new(float64(m.MaxSandboxes)),
	}, nil
}

// Capacity is fault.KindRefused where one more sandbox would exceed the limit of the
// configuration (R111). Where they cannot be counted, the error says why.
func (f *Fleet) Capacity(ctx context.Context, profile string) error {
	m, err := f.findMember(profile)
	if err != nil {
		return err
	}
	release, err := m.capacity.lockCounting(ctx)
	if err != nil {
		return err
	}
	defer release()
	return m.refuseFull(ctx, f.o.Now())
}

// refuseFull is Capacity, under lockCounting.
func (m *member) refuseFull(ctx context.Context, now time.Time) error {
	if m.MaxSandboxes == 0 {
		return nil
	}
	ids, err := m.listOccupied(ctx)
	if err != nil {
		return fault.New(fault.KindOf(err), "%w: max_sandboxes could not be checked; %w", err, providers.ErrNothingMade).
			At(m.Provider.Name(), "create").WithHint("try again, or raise the limit in the configuration")
	}
	if n := m.capacity.countTaken(ids, now); n >= m.MaxSandboxes {
		return fault.New(fault.KindRefused, "%w: %d of %d run; %w", providers.ErrSandboxLimit, n, m.MaxSandboxes, providers.ErrNothingMade).
			At(m.Provider.Name(), "create").WithHint(
			"%s lists the oldest, candidates to terminate; max_sandboxes in the configuration is the limit", providers.OldestFirst(m.Provider.Name()),
		)
	}
	return nil
}

// reserveCapacity counts a create in flight. The caller reports to done the id of the
// created sandbox, "" for none.
func (m *member) reserveCapacity(ctx context.Context, now func() time.Time) (done func(id string), err error) {
	c := m.capacity
	release, err := c.lockCounting(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := m.refuseFull(ctx, now()); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending++
	return func(id string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pending--
		if id != "" && m.MaxSandboxes > 0 {
			c.made[id] = now()
		}
	}, nil
}
