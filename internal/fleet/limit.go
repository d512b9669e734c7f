package fleet

import (
	"context"
	"iter"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// listingLag is how long a listing may lack a sandbox that was made.
const listingLag = 10 * time.Second

// capacity counts the sandboxes of one profile against the limit of its configuration.
type capacity struct {
	// counting is taken while a listing is counted, so that two creates see each other. A
	// channel, since who waits for it may be interrupted.
	counting chan struct{}

	mu      sync.Mutex // of what follows; never held while anything is asked
	pending int        // creates that have not been answered
	made    map[string]time.Time
}

func newCapacity() *capacity {
	return &capacity{counting: make(chan struct{}, 1), made: map[string]time.Time{}}
}

// alone waits until nobody else counts; leave has to be called.
func (c *capacity) alone(ctx context.Context) (leave func(), err error) {
	select {
	case c.counting <- struct{}{}:
		return func() { <-c.counting }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// taken adds what no listing shows yet to those that one shows, and gives how many there
// are with the creates that have not been answered.
func (c *capacity) taken(ids map[string]bool, now time.Time) int {
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

// occupies says that a sandbox counts against a limit: it runs, or nobody can say that
// it does not.
func occupies(s sandbox.State) bool {
	switch s {
	case sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminated, sandbox.StateFailed:
		return false
	case sandbox.StateRunning, sandbox.StateProvisioning, sandbox.StateTerminating, sandbox.StateUnknown:
	}
	return true
}

// occupied counts the sandboxes of a profile that count against a limit.
func (m *member) occupied(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	for s, err := range watched(ctx, m, "count", func(ctx context.Context) iter.Seq2[sandbox.Sandbox, error] {
		return m.rows(ctx, providers.Query{})
	}) {
		if err != nil {
			return nil, err
		}
		if occupies(s.State) {
			ids[s.ID] = true
		}
	}
	return ids, nil
}

// limitQuota is the limit of the configuration as a quota.
func (m *member) limitQuota(ctx context.Context) (providers.Quota, error) {
	ids, err := m.occupied(ctx)
	if err != nil {
		return providers.Quota{}, err
	}
	return providers.Quota{Name: "max_sandboxes", Scope: "the configuration", Unit: "sandboxes", Used: new(float64(len(ids))), Limit: new(float64(m.MaxSandboxes))}, nil
}

// Capacity refuses where one sandbox more would exceed the limit of the configuration
// (ACCEPTANCE R111): fault.KindRefused. Where they cannot be counted, the error is why.
func (f *Fleet) Capacity(ctx context.Context, profile string) error {
	m, err := f.member(profile)
	if err != nil {
		return err
	}
	leave, err := m.capacity.alone(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return m.refuseFull(ctx, f.o.Now())
}

// refuseFull is Capacity, for who counts alone.
func (m *member) refuseFull(ctx context.Context, now time.Time) error {
	if m.MaxSandboxes == 0 {
		return nil
	}
	ids, err := m.occupied(ctx)
	if err != nil {
		return fault.New(fault.KindOf(err), "%w: max_sandboxes could not be checked; %w", err, providers.ErrNothingMade).
			At(m.Provider.Name(), "create").WithHint("try again, or raise the limit in the configuration")
	}
	if n := m.capacity.taken(ids, now); n >= m.MaxSandboxes {
		return fault.New(fault.KindRefused, "%w: %d of %d run; %w", providers.ErrSandboxLimit, n, m.MaxSandboxes, providers.ErrNothingMade).
			At(m.Provider.Name(), "create").WithHint("`sbx ls --provider %s --sort age` shows what can be ended; max_sandboxes in the configuration is the limit", m.Provider.Name())
	}
	return nil
}

// reserve takes one place of the capacity; what it gives has to be told which sandbox
// was made, "" for none.
func (m *member) reserve(ctx context.Context, now func() time.Time) (done func(id string), err error) {
	c := m.capacity
	leave, err := c.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
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
