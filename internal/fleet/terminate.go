package fleet

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"sbx/internal/sandbox"
)

// DefaultWait is how long an end is waited for.
const DefaultWait = 30 * time.Second

// EndOptions are the options of Terminate. Permission is checked by the package safety,
// through which every caller comes.
type EndOptions struct {
	Delete bool          // also destroy what the provider would keep
	Grace  time.Duration // for a program that handles SIGTERM
	// FullGrace grants the whole Grace, also to a program that does not react.
	FullGrace bool
	// Wait is for the end to be seen, from the request on; 0 = DefaultWait, or until its own grace is over, see
	// graceMargin.
	Wait time.Duration
	By   string // who asks, for the provider's record
	// VerifyOnly sends no request and reads nothing before: an earlier request is verified.
	VerifyOnly bool
	Recheck    Recheck
	// Earlier are the last requests to end these sandboxes that an earlier run or process has sent. The
	// request of this run is in sandbox.Ending.Request, to be stored and given here the next time.
	Earlier map[sandbox.Ref]*sandbox.EndRequest
	// Before is called right before the request, with what is known of the sandbox then, and whether the request
	// deletes it: an error fails it, and no request is sent. It may be called concurrently, as After. Nil = nothing.
	Before func(ctx context.Context, s sandbox.Sandbox, del bool) error
	// After is called when the request was answered, abandoned or not sent, before the end is verified, so
	// that the answer can be stored. Nil = nothing.
	After func(sandbox.Ref, sandbox.EndRequest)

	ownGrace bool // Wait is not set by the caller
}

// Recheck configures the read just before the request. Its functions may be called
// concurrently.
type Recheck struct {
	// Skip is why the sandbox is not read before the request; "" = it is read.
	Skip string
	// Prepare is called before the read, for queries that need the sandbox to exist: so
	// nothing slow happens between the read and the request. Nil = nothing.
	Prepare func(context.Context, sandbox.Sandbox)
	// AlreadyAsked reports, by what was read, that an earlier request is in progress: the
	// sandbox is then verified without a new judgement or request. Nil = no.
	AlreadyAsked func(sandbox.Sandbox) bool
	// MayRepeat reports, by what was read, that an AlreadyAsked request which nobody acknowledged may
	// be sent once more. Nil = no.
	MayRepeat func(sandbox.Sandbox) bool
	// Judge judges what was read: "" goes on, anything else is the outcome (changed,
	// skipped or not_attempted), with its reason. Nil = goes on.
	Judge func(sandbox.Sandbox) (sandbox.Outcome, string)
	// AllowUnreadable permits a delete although the record cannot be read, by what is known
	// of the target. Nil = such a sandbox is left alone.
	AllowUnreadable func(target sandbox.Sandbox) bool
}

// Terminate ends sandboxes and verifies it: each is read (see Recheck), requested to end
// exactly once, and read again, at the intervals of Options.Poll, until it has ended or Wait
// has passed. Each distinct target is yielded exactly once, with its outcome, in the order
// of completion.
//
// A target that was listed or read has a state, which is evidence that it existed. Without
// a state, a 404 is failed with fault.KindNotFound, never an end.
//
// When ctx ends, targets without a request are not_attempted and the others accepted or
// failed. A provider that is silent for its timeout is abandoned in the same way; the others
// continue. A consumer that stops early ends the run like ctx does. The sequence can be read
// once.
func (f *Fleet) Terminate(ctx context.Context, targets []sandbox.Sandbox, o EndOptions) iter.Seq[sandbox.Ending] {
	if o.Wait <= 0 {
		o.Wait, o.ownGrace = DefaultWait, true
	}
	targets = distinctWhere(targets, func(sandbox.Sandbox) bool { return true })
	var spent atomic.Bool
	return func(yield func(sandbox.Ending) bool) {
		if spent.Swap(true) {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan sandbox.Ending, len(targets)) // no sender waits for the consumer
		go f.endAll(ctx, targets, o, ended)
		forward(ended, cancel, yield)
	}
}

// endAll ends each provider's share of the targets, all at once. It closes ended after the
// last outcome.
func (f *Fleet) endAll(ctx context.Context, targets []sandbox.Sandbox, o EndOptions, ended chan<- sandbox.Ending) {
	defer close(ended)
	shares := map[string][]sandbox.Sandbox{}
	for _, t := range targets {
		shares[t.Provider] = append(shares[t.Provider], t)
	}
	var all sync.WaitGroup
	for profile, share := range shares {
		m, err := f.findMember(profile)
		if err != nil {
			for _, t := range share {
				ended <- sandbox.Ending{Ref: t.Ref(), Outcome: sandbox.OutcomeFailed, Reason: err.Error(), Err: err}
			}
			continue
		}
		all.Go(func() { f.endShare(ctx, m, share, o, ended) })
	}
	all.Wait()
}

// endShare ends the targets of one provider, sending the requests in their order. Each has a
// goroutine, since most of them wait for a slot or for an end.
func (f *Fleet) endShare(ctx context.Context, m *member, share []sandbox.Sandbox, o EndOptions, ended chan<- sandbox.Ending) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	l := newEndRun(m, cut, len(share), f.o.Poll.Min/2)
	began, kept := time.Now(), f.newRequestCache()
	turns := make(chan struct{}, f.o.Slots) // limits the senders and keeps their order
	endings := make([]sandbox.Ending, len(share))
	var all sync.WaitGroup
	for i, target := range share {
		turns <- struct{}{}
		all.Go(func() {
			e := &termination{f: f, endRun: l, target: target, o: o, beganAt: began, earlier: kept, endTurn: sync.OnceFunc(func() { <-turns; l.doneSending() })}
			out := e.runStages(ctx)
			e.endTurn()
			if err := kept.update(ctx, out); err != nil && out.Request.Unconfirmed() {
				out.Reason += "; the request could not be stored for later runs: " + err.Error()
			}
			f.recordEvent(out.Ref, string(out.Outcome), out.Reason)
			endings[i] = out
			ended <- out
		})
	}
	all.Wait()
	f.dropEnded(m.Provider.Name(), endings)
}
