package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/schedule"
)

// client is one process's connection to a cloud. All of its calls fail once the
// process is dead.
type client struct {
	s   *sim
	inc *incarnation
	c   *cloud
}

var errDead = errors.New("this process is dead")

// provider gives a cloud the abilities of its kind.
func (inc *incarnation) provider(c *cloud) providers.Provider {
	base := &client{inc.s, inc, c}
	switch c.kind {
	case voiced:
		return struct {
			*client
			voices
		}{base, voices{base}}
	case clocked:
		return struct {
			*client
			voices
			clock
		}{base, voices{base}, clock{base}}
	case proving:
		return struct {
			*client
			voices
			clock
			proofs
		}{base, voices{base}, clock{base}, proofs{base}}
	}
	return base
}

func (p *client) Name() string { return p.c.name }
func (p *client) Type() string { return "simulated" }

// request begins every call. The caller has to apply the returned fault; arrived is false
// where the request was lost.
func (p *client) request(ctx context.Context, op, id string, page int) (harm string, arrived bool, err error) {
	s := p.s
	s.mu.Lock()
	alive := s.step(p.inc, op+" "+id)
	key := fmt.Sprint(p.inc.n, op, p.c.name, id, page)
	p.inc.calls[key]++
	key += fmt.Sprint("#", p.inc.calls[key])
	harm = s.harm(op, p.c.name, id, page, key)
	if harm != "" {
		s.Logf("%s: %s %s/%s page %d: %s", p.inc, op, p.c.name, id, page, harm)
	}
	s.mu.Unlock()
	if !alive {
		return harm, false, errDead
	}
	took := time.Duration(float64(300*time.Millisecond)*s.Roll("takes", key)) + time.Millisecond
	if harm == "hangs" {
		<-ctx.Done()
		return harm, false, ctx.Err()
	}
	if !schedule.Sleep(ctx, took) {
		return harm, s.Roll("arrived", key) < 0.5, ctx.Err()
	}
	if s.dead(p.inc) {
		return harm, s.Roll("arrived", key) < 0.5, errDead
	}
	switch harm {
	case "5xx":
		return harm, false, p.trouble("503 from upstream")
	case "429":
		return harm, false, p.trouble("429 slow down")
	}
	return harm, true, nil
}

func (p *client) trouble(text string) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.inc.unavailable[p.c.name]++
	return fault.New(fault.KindUnavailable, "%s", text).At(p.c.name, "")
}

// answer returns the result to the process, if it is still alive.
func (p *client) answer(op, id string) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if !p.s.step(p.inc, "answer to "+op+" "+id) {
		return errDead
	}
	p.inc.skews[p.c.name] = p.c.skew - p.s.clock.off
	return nil
}

// List streams pages.
func (p *client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		seen := &listing{gens: map[string]int{}}
		p.s.mu.Lock()
		if before := p.inc.listings[p.c.name]; before == nil || !before.complete {
			p.inc.listings[p.c.name] = seen // a later one, which doubts a 404, selects nothing until it is whole
		}
		ids := slices.Clone(p.c.order)
		odd := p.c.listed%2 == 0
		p.c.listed++
		p.s.mu.Unlock()
		for page := 1; page == 1 || len(ids) > 0; page++ {
			harm, _, err := p.request(ctx, "list", "", page)
			if err == nil {
				err = p.answer("list", "")
			}
			if err != nil {
				if p.s.mut.swallowsListErrors {
					return
				}
				yield(sandbox.Sandbox{}, err)
				return
			}
			if harm == "is empty" {
				break
			}
			n := min(p.c.page, len(ids))
			if !p.yieldPage(ids[:n], odd, harm, seen, yield) {
				return
			}
			if harm == "repeats its token" {
				if p.yieldPage(ids[:n], odd, harm, seen, yield) && !p.s.mut.swallowsListErrors {
					yield(sandbox.Sandbox{}, p.trouble("the page token repeats"))
				}
				return
			}
			ids = ids[n:]
		}
		p.s.mu.Lock()
		seen.complete = true
		p.inc.listings[p.c.name] = seen
		seen.skew = p.inc.skews[p.c.name]
		p.s.mu.Unlock()
		_ = q
	}
}

func (p *client) yieldPage(page []*box, odd bool, harm string, seen *listing, yield func(sandbox.Sandbox, error) bool) bool {
	now := time.Now()
	var out []sandbox.Sandbox
	p.s.mu.Lock()
	for _, b := range page {
		s, shown := p.c.shown(b, now, odd)
		if !shown || harm == "hides paused" && s.State == sandbox.StatePaused {
			continue
		}
		if _, twice := seen.gens[b.id]; !twice {
			seen.fleet = append(seen.fleet, s)
		}
		seen.gens[b.id] = b.gen
		if ref := (sandbox.Ref{Provider: p.c.name, ID: b.id}); p.inc.denied[ref] {
			look := b.sight(now, p.c)
			look.state, look.off = s.State, p.s.clock.off
			p.inc.sights[ref] = look
		}
		out = append(out, s)
	}
	p.s.mu.Unlock()
	for _, s := range out {
		if !yield(s, nil) {
			return false
		}
	}
	return true
}

// Get reads one by its id.
func (p *client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	harm, _, err := p.request(ctx, "get", id, 0)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	p.s.mu.Lock()
	b := p.c.find(id)
	ref := sandbox.Ref{Provider: p.c.name, ID: id}
	now := time.Now()
	found, view := "nothing", sandbox.Sandbox{}
	if b != nil {
		found = p.c.remains(b, now)
	}
	asked, wasAsked := p.inc.requested[ref]
	if p.s.mut.seesEndsAtOnce && wasAsked {
		found = "gone"
	}
	if wasAsked && !asked.After(now) {
		p.inc.readAfter[ref] = now
	}
	delete(p.inc.sights, ref)
	p.inc.denied[ref] = found != "record"
	if found == "record" {
		view = p.c.view(b, now)
		look := b.sight(now, p.c)
		look.unreadable, look.off = harm == "cannot be read", p.s.clock.off
		p.inc.sights[ref] = look
	}
	if old, there := p.inc.first[ref]; p.s.mut.readsStale && there && !wasAsked {
		view = old
	}
	p.s.mu.Unlock()
	if err := p.answer("get", id); err != nil {
		return sandbox.Sandbox{}, err
	}
	switch {
	case harm == "cannot be read":
		return sandbox.Sandbox{}, fault.New(fault.KindUnavailable, "%w", providers.ErrUnreadable).At(p.c.name, "get "+id)
	case found == "gone":
		return sandbox.Sandbox{}, fault.New(fault.KindGone, "it has ended").At(p.c.name, "get "+id)
	case found == "nothing":
		return sandbox.Sandbox{}, fault.New(fault.KindNotFound, "no such sandbox").At(p.c.name, "get "+id)
	}
	return view, nil
}

// Terminate requests the end; it takes effect when the request arrives.
func (p *client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	p.s.mu.Lock()
	p.s.onRequest(p.inc, sandbox.Ref{Provider: p.c.name, ID: id}, o.Delete)
	p.s.mu.Unlock()
	if p.s.mut.asksTwice {
		p.s.mu.Lock()
		p.s.onRequest(p.inc, sandbox.Ref{Provider: p.c.name, ID: id}, o.Delete)
		p.s.mu.Unlock()
	}
	harm, arrived, err := p.request(ctx, "terminate", id, 0)
	if !arrived {
		return err
	}
	found := p.end(id, o, harm)
	switch {
	case err != nil:
		return err
	case harm == "does it, then 5xx":
		return p.trouble("503 after the work")
	case harm == "does it, then hangs":
		<-ctx.Done()
		return ctx.Err()
	}
	if err := p.answer("terminate", id); err != nil {
		return err
	}
	switch found {
	case "gone":
		return fault.New(fault.KindGone, "it has ended").At(p.c.name, "terminate "+id)
	case "nothing":
		return fault.New(fault.KindNotFound, "no such sandbox").At(p.c.name, "terminate "+id)
	}
	return nil
}

// end applies a request, and returns what was there.
func (p *client) end(id string, o providers.TerminateOptions, harm string) string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	now := time.Now()
	b := p.c.find(id)
	if b == nil {
		return "nothing"
	}
	found := p.c.remains(b, now)
	switch {
	case found != "record":
		return found
	case b.over(now) && !o.Delete:
		return "gone"
	case harm == "says yes, does nothing", b.deaf:
		return found
	}
	b.delete = b.delete || o.Delete
	if b.asked.IsZero() {
		b.asked = now
		p.s.Logf("%s/%s receives the request to end", p.c.name, id)
	}
	return found
}
