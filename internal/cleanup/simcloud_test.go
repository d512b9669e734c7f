package cleanup_test

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// cloud is one provider as it truly is. It outlives every process.
type cloud struct {
	name   string
	seed   uint64 // of the simulation
	kind   cloudKind
	skew   time.Duration // of its clock
	stops  bool          // what is ended without a delete stays as stopped
	leaves string        // what a read finds of what has ended: "record", "gone" or "nothing"
	flaps  time.Duration // for how long a listing may still show what has ended
	early  bool          // its reads say 404 as soon as an end was asked for
	page   int

	production bool
	ageOnly    bool
	owned      string                   // "all", "team" or "sbx"
	stuckAfter map[string]time.Duration // by agent type

	order   []*box
	history []*box // every sandbox that ever was
	listed  int
}

// cloudKind says what a provider can tell beside its records.
type cloudKind int

const (
	mute    cloudKind = iota // records only
	voiced                   // also output and usage
	clocked                  // also its time
	proving                  // also whether an end is real
	kinds
)

func (c *cloud) find(id string) *box {
	i := slices.IndexFunc(c.order, func(b *box) bool { return b.id == id })
	if i < 0 {
		return nil
	}
	return c.order[i]
}

// generation finds one sandbox among all that ever had an id.
func (c *cloud) generation(id string, gen int) *box {
	i := slices.IndexFunc(c.history, func(b *box) bool { return b.id == id && b.gen == gen })
	if i < 0 {
		return nil
	}
	return c.history[i]
}

func (c *cloud) add(b *box) {
	c.history = append(c.history, b)
	if i := slices.IndexFunc(c.order, func(o *box) bool { return o.id == b.id }); i >= 0 {
		c.order[i] = b
		return
	}
	c.order = append(c.order, b)
}

// remains says what is left of a sandbox for a read: "record", "gone" or
// "nothing".
func (c *cloud) remains(b *box, now time.Time) string {
	switch {
	case b.asked.IsZero() || b.deaf:
	case c.early && !b.over(now):
		return "nothing"
	case b.over(now) && b.delete && c.leaves == "record":
		return "nothing"
	}
	if !b.over(now) || b.state.Ended() && b.asked.IsZero() {
		return "record"
	}
	if c.stops && !b.delete && b.ended.IsZero() {
		return "record"
	}
	return c.leaves
}

// shown says whether a listing holds a sandbox, and as what.
func (c *cloud) shown(b *box, now time.Time, odd bool) (sandbox.Sandbox, bool) {
	if c.remains(b, now) == "record" {
		return c.view(b, now), true
	}
	if !odd || !b.over(now) || now.Sub(b.end()) > c.flaps {
		return sandbox.Sandbox{}, false
	}
	before := *b // the stale page that a cache still serves
	before.asked, before.ended = time.Time{}, time.Time{}
	return c.view(&before, now), true
}

// limit is how old its sandboxes of an agent type may grow.
func (c *cloud) limit(agent string) time.Duration {
	if d, ok := c.stuckAfter[agent]; ok {
		return d
	}
	if d, ok := c.stuckAfter[""]; ok {
		return d
	}
	return 10 * time.Minute
}

// owns holds labels against what is ours.
func (c *cloud) owns(labels map[string]string) bool {
	switch c.owned {
	case "team":
		return labels["team"] == "agents"
	case "sbx":
		_, there := labels["sbx/owner"]
		return there
	}
	return true
}
