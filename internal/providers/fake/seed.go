package fake

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Seed is a sandbox that is there without having been created through the
// provider. Its timestamps are taken as they are, so that an age may be
// unknown or lie in the future.
type Seed struct {
	Sandbox  sandbox.Sandbox // ID "" = the next one; State "" = running
	Logs     []sandbox.LogLine
	Flood    int // this many further lines, made as they are read
	Usage    func(now time.Time) sandbox.Usage
	EndFor   time.Duration // 0 = as Options say; Forever = it never gets beyond terminating
	Dead     bool          // it is listed as running, and nothing inside answers
	Leftover bool          // a dead control process left it: the next sweep ends it
}

// Add puts sandboxes in, in the order of later listings, and returns their ids.
func (p *Provider) Add(seeds ...Seed) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.broadcast()
	ids := make([]string, 0, len(seeds))
	for _, seed := range seeds {
		b := &box{
			s: seed.Sandbox.Clone(), logs: slices.Clone(seed.Logs), flood: seed.Flood,
			usage: seed.Usage, endFor: seed.EndFor, leftover: seed.Leftover, dead: seed.Dead,
		}
		if b.s.State == "" {
			b.s.State = sandbox.StateRunning
		}
		if b.s.ActivityBasis == sandbox.BasisUnknown && !p.o.PartialLogs {
			b.s.ActivityBasis = sandbox.BasisReports // as Activity tells it
		}
		if b.endFor == 0 {
			b.endFor = p.o.EndFor
		}
		ids = append(ids, p.put(b))
	}
	return ids
}

// put files a box under its id. The lock is held.
func (p *Provider) put(b *box) string {
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

// Change edits what is said of a sandbox; false when there is none.
func (p *Provider) Change(id string, edit func(*sandbox.Sandbox)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[id]
	if !ok {
		return false
	}
	edit(&b.s)
	p.broadcast()
	return true
}

// Write adds lines to a sandbox's log; false when there is none.
func (p *Provider) Write(id string, lines ...sandbox.LogLine) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[id]
	if !ok {
		return false
	}
	b.logs = append(b.logs, lines...)
	p.broadcast()
	return true
}

// Call is one request that the fake received.
type Call struct {
	Op   Op
	ID   string
	Page int // of a listing, from 1
	At   time.Time
}

// Calls gives the requests so far, oldest first; with ops, only those.
func (p *Provider) Calls(ops ...Op) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(c Call) bool {
		return len(ops) > 0 && !slices.Contains(ops, c.Op)
	})
}

// Peak is the largest number of requests that were in flight at once.
func (p *Provider) Peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}
