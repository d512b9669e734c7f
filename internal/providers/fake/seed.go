package fake

import (
	"cmp"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Seed is a sandbox that was not created through the provider. Its timestamps are used as they are, so
// an age may be unknown or in the future.
type Seed struct {
	Sandbox  sandbox.Sandbox // ID "" = the next one; State "" = running
	Logs     []sandbox.LogLine
	Flood    int // number of generated lines
	Usage    func(now time.Time) sandbox.Usage
	EndFor   time.Duration // 0 = Options.EndFor; Forever = it stays in terminating
	Dead     bool          // it is listed as running and does not answer
	Leftover bool          // the next sweep ends it
}

// Add adds sandboxes, in the order of listings, and returns their ids.
func (p *Provider) Add(seeds ...Seed) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.notifyChange()
	ids := make([]string, 0, len(seeds))
	for _, seed := range seeds {
		b := &box{
			s: seed.Sandbox.Clone(), logs: slices.Clone(seed.Logs), flood: seed.Flood,
			usage: seed.Usage, endFor: seed.EndFor, leftover: seed.Leftover, dead: seed.Dead,
		}
		b.s.State = cmp.Or(b.s.State, sandbox.StateRunning)
		if b.s.ActivityBasis == sandbox.BasisUnknown && !p.o.PartialLogs {
			b.s.ActivityBasis = sandbox.BasisReports // as in Activity
		}
		b.endFor = cmp.Or(b.endFor, p.o.EndFor)
		ids = append(ids, p.storeBox(b))
	}
	return ids
}

// storeBox stores a box by its id. The lock is held.
func (p *Provider) storeBox(b *box) string {
	if b.s.ID == "" {
		b.s.ID = p.nextID()
	}
	b.s.Provider, b.s.ProviderType = p.o.Name, p.o.Type
	if _, known := p.boxes[b.s.ID]; !known {
		p.order = append(p.order, b.s.ID)
	}
	p.boxes[b.s.ID] = b
	return b.s.ID
}

// Change edits the record of a sandbox; false without one.
func (p *Provider) Change(id string, edit func(*sandbox.Sandbox)) bool {
	return p.editBox(id, func(b *box) { edit(&b.s) })
}

// Write adds lines to a sandbox's log; false without one.
func (p *Provider) Write(id string, lines ...sandbox.LogLine) bool {
	return p.editBox(id, func(b *box) { b.logs = append(b.logs, lines...) })
}

// Call is one request that the fake received.
type Call struct {
	Op   Op
	ID   string
	Page int // of a listing, from 1
	At   time.Time
}

// Calls are the requests so far, oldest first; with ops, only those.
func (p *Provider) Calls(ops ...Op) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(c Call) bool {
		return len(ops) > 0 && !slices.Contains(ops, c.Op)
	})
}

// Peak is the largest number of concurrent requests.
func (p *Provider) Peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}
