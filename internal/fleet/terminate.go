package fleet

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"sbx/internal/sandbox"
)

// DefaultWait is how long an end is waited for (CLI.md, terminate).
const DefaultWait = 30 * time.Second

// EndOptions say how sandboxes shall end. Who may end them is not decided here: every
// caller comes through the room safety.
type EndOptions struct {
	Delete bool          // also destroy what the provider would keep
	Grace  time.Duration // for a program that can hear TERM
	// Patient grants the whole Grace, also to a program that does not react.
	Patient bool
	Wait    time.Duration // for the end to be seen, from the request on; 0 = DefaultWait
	By      string        // who asks, for the provider's record
	Origin  EndOrigin     // on whose behalf, for the journal
	// VerifyOnly says that somebody else has asked already: nothing is read before and
	// nothing is sent, and the end is looked for.
	VerifyOnly bool
	Recheck    Recheck
	Record     EndRecord
}

// Recheck is the read just before the request, and what is made of it. Its functions
// are called from several goroutines.
type Recheck struct {
	// Skip is why the sandbox is not read before it is asked to end; "" = it is read.
	Skip string
	// Prepare is called before the read, for what has to be known of the sandbox while
	// it is there: so nothing slow lies between the read and the request. Nil = nothing.
	Prepare func(context.Context, sandbox.Sandbox)
	// AlreadyAsked says of what was read that an earlier request to end it is at work: it
	// is not judged and not asked again, only looked at. Nil = no.
	AlreadyAsked func(sandbox.Sandbox) bool
	// Judge judges what was read: "" goes on, anything else is the outcome (changed,
	// skipped or not_attempted), with its reason. Nil = goes on.
	Judge func(sandbox.Sandbox) (sandbox.Outcome, string)
	// AllowUnreadable says that a delete may go on although the record cannot be read, by
	// what is known of the target. Nil = what cannot be read is left alone.
	AllowUnreadable func(target sandbox.Sandbox) bool
}

// EndRecord is what a caller keeps of requests to end. Its functions are called from
// several goroutines; each may be nil.
type EndRecord struct {
	// Earlier gives the last request to end a sandbox that an earlier run or process has
	// sent; nil = none is known. What became of the request of this run is in
	// sandbox.Ending.Request, to be kept and given here the next time.
	Earlier func(sandbox.Ref) *sandbox.EndRequest
	// BeforeRequest is called right before the request, with what is known of the
	// sandbox then: an error fails it, and nothing is asked.
	BeforeRequest func(context.Context, sandbox.Sandbox) error
	// AfterRequest is called when the request was answered or given up, before the end is
	// looked for, so that the answer can be kept.
	AfterRequest func(sandbox.Ref, sandbox.EndRequest)
}

// Terminate ends sandboxes and verifies it: each is read (see Recheck), asked
// to end exactly once, and read again, at the pace of Options.Poll, until it
// has ended or Wait is over. Each distinct target comes out exactly once, with
// its outcome, in the order of completion.
//
// A target that was listed or read has a state; that counts as evidence that
// it existed. Without, a 404 is failed with fault.KindNotFound, never an end.
//
// When ctx ends, what was not asked is not_attempted and what was asked is
// accepted or failed. A provider that is silent for its timeout is given up in
// the same way; the others go on. A consumer that stops early ends the run
// like ctx does. The sequence can be read once.
func (f *Fleet) Terminate(ctx context.Context, targets []sandbox.Sandbox, o EndOptions) iter.Seq[sandbox.Ending] {
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	targets = each(targets, func(sandbox.Sandbox) bool { return true })
	var spent atomic.Bool
	return func(yield func(sandbox.Ending) bool) {
		if spent.Swap(true) {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan sandbox.Ending, len(targets)) // nobody waits for the consumer
		go f.endAll(ctx, targets, o, ended)
		defer func() {
			cancel()
			for range ended { // closed once every goroutine has returned
				continue
			}
		}()
		for e := range ended {
			if !yield(e) {
				return
			}
		}
	}
}

// endAll ends what each provider has of the targets, all at once. It closes
// ended after the last outcome.
func (f *Fleet) endAll(ctx context.Context, targets []sandbox.Sandbox, o EndOptions, ended chan<- sandbox.Ending) {
	defer close(ended)
	journal := f.journalOf(ctx, targets, o)
	defer journal.Close(ctx)
	shares := map[string][]sandbox.Sandbox{}
	for _, t := range targets {
		shares[t.Provider] = append(shares[t.Provider], t)
	}
	var all sync.WaitGroup
	for profile, share := range shares {
		m, err := f.member(profile)
		if err != nil {
			for _, t := range share {
				out := sandbox.Ending{Ref: t.Ref(), Outcome: sandbox.OutcomeFailed, Reason: err.Error(), Err: err}
				journal.Result(out)
				ended <- out
			}
			continue
		}
		all.Go(func() { f.endShare(ctx, m, share, o, journal, ended) })
	}
	all.Wait()
}

// endShare ends the targets of one provider, asking in their order. Each has a
// goroutine, since most of them wait most of the time, for a slot or for an end.
func (f *Fleet) endShare(ctx context.Context, m *member, share []sandbox.Sandbox, o EndOptions, journal EndJournal, ended chan<- sandbox.Ending) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	l := newLine(m, cut, len(share), f.o.Poll.Min/2)
	began, kept := time.Now(), f.requests()
	turns := make(chan struct{}, f.o.Slots) // as many ask as may; the first first
	var all sync.WaitGroup
	for _, target := range share {
		turns <- struct{}{}
		all.Go(func() {
			e := &end{f: f, line: l, target: target, o: o, began: began, kept: kept, journal: journal, leave: sync.OnceFunc(func() { <-turns; l.left() })}
			out := e.run(ctx)
			e.leave()
			if err := kept.note(ctx, out); err != nil && out.Request.Unconfirmed() {
				out.Reason += "; that could not be kept for later looks: " + err.Error()
			}
			f.tell(out.Ref, string(out.Outcome), out.Reason)
			journal.Result(out)
			ended <- out
		})
	}
	all.Wait()
}
