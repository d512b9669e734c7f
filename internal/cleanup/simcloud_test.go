package cleanup_test

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// cloud is the true state of one provider. It outlives every process.
type cloud struct {
	name   string
	seed   uint64 // of the simulation
	kind   cloudKind
	skew   time.Duration // of its clock
	stops  bool          // without a delete, an ended one stays as stopped
	leaves string        // what a read returns for an ended one: "record", "gone" or "nothing"
	flaps  time.Duration // how long a listing may still show an ended one
	early  bool          // its reads return 404 as soon as an end was requested
	page   int

	production bool
	ageOnly    bool
	owned      string                   // "all", "team" or "sbx"
	stuckAfter map[string]time.Duration // by agent type

	order   []*box
	history []*box // every sandbox that ever existed
	listed  int
}

// cloudKind is which abilities a provider has.
type cloudKind int

const (
	mute    cloudKind = iota // records only
	voiced                   // also output and usage
	clocked                  // also its clock
	proving                  // also the proof of an end
	kinds
)

func (c *cloud) find(id string) *box {
	i := slices.IndexFunc(c.order, func(b *box) bool { return b.id == id })
	if i < 0 {
		return nil
	}
	return c.order[i]
}

// generation finds one sandbox among all with an id.
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

// remains is what a read of an ended sandbox returns: "record", "gone" or "nothing".
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

// shown is whether and how a listing contains a sandbox.
func (c *cloud) shown(b *box, now time.Time, odd bool) (sandbox.Sandbox, bool) {
	if c.remains(b, now) == "record" {
		return c.view(b, now), true
	}
	if !odd || !b.over(now) || now.Sub(b.end()) > c.flaps {
		return sandbox.Sandbox{}, false
	}
	before := *b // the stale page of a cache
	before.asked, before.ended = time.Time{}, time.Time{}
	return c.view(&before, now), true
}

// limit is the age limit of an agent type.
func (c *cloud) limit(agent string) time.Duration {
	if d, ok := c.stuckAfter[agent]; ok {
		return d
	}
	if d, ok := c.stuckAfter[""]; ok {
		return d
	}
	return 10 * time.Minute
}

// owns checks ownership by labels.
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
