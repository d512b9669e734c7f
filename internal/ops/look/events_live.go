package look

import (
	"context"
	"os"
	"sync"
	"time"

	"sbx/internal/agentlog"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// readSandbox reads the events of a sandbox, or of the last sandbox of a task: what its agent reported, those of
// its life, and its end where that is on record.
func (r *EventsResult) readSandbox(ctx context.Context, e *ops.Env, word string, o agentlog.Options) (*EventsResult, error) {
	f, ref, missing := findEvents(ctx, e, word)
	if f == nil {
		return nil, missing
	}
	r.fleet, r.ref, r.Name, r.collect = f, ref, ref.String(), agentlog.NewCollector(o)
	err := f.AgentEvents(ctx, ref, 0, nil, func(event providers.AgentEvent) bool { r.add(event); return true })
	r.Session = r.collect.NewestFirst()
	if end, known := recall.EndOf(ctx, e, ref.String()); known {
		r.collect.Add(agentlog.Raw{Type: "sbx.end", Source: "sbx", At: end.At, Detail: endDetail(end)})
	}
	r.Session = r.collect.Session()
	switch {
	case err == nil:
	case len(r.Events) > 0:
		r.Errors = []error{ops.CauseOr(ctx, err)}
	case missing != nil:
		return nil, missing
	default:
		return nil, err
	}
	return r, nil
}

// findEvents finds whose events are meant. Of a sandbox that is gone a full reference is enough, since the
// events may be left: then the fleet is there beside the error. Without a fleet nothing can be read.
func findEvents(ctx context.Context, e *ops.Env, word string) (*fleet.Fleet, sandbox.Ref, error) {
	f, ref, err := findLog(ctx, e, word)
	if !isAbsent(err) {
		return f, ref, err
	}
	whole, wrong := sandbox.ParseRef(word)
	if wrong != nil || whole.Bare() {
		return nil, ref, err
	}
	f, failed := e.Fleet(ctx)
	if failed != nil {
		return nil, ref, err
	}
	return f, whole, err
}

// endDetail is "terminate by ada: verified (over 10m)".
func endDetail(end recall.EndRecord) string {
	text := end.Verb
	if end.Who != "" {
		text += " by " + end.Who
	}
	return ops.WithDetail(text+": "+string(end.Outcome), end.Reason)
}

// add adds an event; false where it is known.
func (r *EventsResult) add(e providers.AgentEvent) bool {
	return r.collect.Add(agentlog.Raw{ID: e.ID, Type: e.Type, Source: e.Source, At: e.At, Data: e.Data, Detail: e.Detail})
}

// How often new events are looked for: of a sandbox, after the first look, and of a file.
const (
	followFirst = 500 * time.Millisecond
	followPause = time.Second
	followFile  = 250 * time.Millisecond
	// followGap is the least time between two looks: an agent that reports much wakes them often.
	followGap = 100 * time.Millisecond
	// followState is how often the state of a sandbox is read, to end with it.
	followState = 10 * time.Second
	// followConfirm is how long after a read that did not find the sandbox the next one may confirm that.
	followConfirm = 2 * time.Second
	// followPage is how many of the newest events a look requests.
	followPage = 100
)

// Follow calls show with the events that come after those that were read, the oldest first, until ctx ends or show
// fails: r has the new ones alone. A sandbox that has ended ends it too, with nil. A look that fails is reported
// once, and repeated after up to 30 s.
func (r *EventsResult) Follow(ctx context.Context, watch ops.Observer, show func() error) error {
	const longest = 30 * time.Second
	pause, failing := poll.NewBackoff(followPause, longest), false
	next, woken := min(followFirst, r.followPause()), make(chan struct{}, 1)
	if r.fleet != nil {
		defer r.wakeOnEvents(ctx, woken)()
	}
	for {
		if err := r.waitForEvents(ctx, next, woken, failing); err != nil {
			return err
		}
		next = r.followPause()
		ended := r.sandboxHasEnded(ctx, watch) // before the look, so that it has the last events
		err := r.readNew(ctx, watch)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.Len() > 0 { // also what one source has where another one fails
			if err := show(); err != nil {
				return err
			}
		}
		switch unconfirmed := r.absent == 1 && isAbsent(err); {
		case ended:
			watch.Note(r.Name + " has ended")
			return unlessAbsent(err)
		case err == nil:
			failing = false
			pause.Reset()
			continue
		case !failing && !unconfirmed:
			watch.Warn(err.Error())
			failing = true
		}
		next = pause.Next()
	}
}

// unlessAbsent is err, and nil where it says that there is no such sandbox, as is normal after its end.
func unlessAbsent(err error) error {
	if isAbsent(err) {
		return nil
	}
	return err
}

// wakeOnEvents puts a token into woken for each event that a source announces. The function that it returns ends that.
func (r *EventsResult) wakeOnEvents(ctx context.Context, woken chan<- struct{}) func() {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		r.fleet.WakeOnAgentEvents(ctx, r.ref, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	})
	return func() { cancel(); running.Wait() }
}

// waitForEvents waits for the time of the next look, or for an announced event. While looks fail, events do not
// shorten the pause.
func (r *EventsResult) waitForEvents(ctx context.Context, next time.Duration, woken <-chan struct{}, failing bool) error {
	if failing || next <= followGap {
		return poll.Sleep(ctx, next)
	}
	if err := poll.Sleep(ctx, followGap); err != nil {
		return err
	}
	timer := time.NewTimer(next - followGap)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	case <-woken:
	}
	return nil
}

// followPause is the time between two looks.
func (r *EventsResult) followPause() time.Duration {
	if r.fleet == nil {
		return followFile
	}
	return followPause
}

// sandboxHasEnded reads the state of a sandbox every followState. It has ended where its provider has it as ended, or
// where two reads in a row, followConfirm apart, did not find it: one 404 or 410 may come from a proxy, or from an API
// that has not caught up. Reads that fail in another way decide nothing. Where a request to end it is not
// acknowledged, its absence proves nothing: that is a warning, and the following goes on.
func (r *EventsResult) sandboxHasEnded(ctx context.Context, watch ops.Observer) bool {
	pause := followState
	if r.absent == 1 {
		pause = followConfirm
	}
	if r.fleet == nil || time.Since(r.stateAt) < pause {
		return false
	}
	r.stateAt = time.Now()
	s, err := r.fleet.Get(ctx, r.ref)
	switch {
	case err == nil:
		r.absent = 0
		return s.State.Ended()
	case !isAbsent(err):
		return false
	}
	if r.absent++; r.absent < 2 {
		return false
	}
	doubt := r.fleet.EndUnproved(ctx, r.ref)
	if doubt != nil && r.absent == 2 && ctx.Err() == nil {
		watch.Warn(doubt.Error() + "; its events are followed further")
	}
	return doubt == nil
}

// isAbsent says that the answer was that there is no such sandbox.
func isAbsent(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindNotFound || kind == fault.KindGone
}

// readNew reads the events that are new.
func (r *EventsResult) readNew(ctx context.Context, watch ops.Observer) error {
	if r.fleet != nil {
		r.collect.Forget()
		defer func() { r.Session = r.collect.NewestFirst() }()
		seen := 0
		return r.fleet.AgentEvents(ctx, r.ref, followPage, &r.refused, func(e providers.AgentEvent) bool {
			seen++
			return r.add(e) || seen < followPage
		})
	}
	defer func() { r.Session = r.collect.Session() }()
	file, err := os.Open(r.file)
	if err != nil {
		return fault.New(fault.KindUnavailable, "%s: it cannot be read: %s", r.Name, reason(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fault.New(fault.KindUnavailable, "%s: it cannot be read: %s", r.Name, reason(err))
	}
	another := r.opened != nil && !os.SameFile(r.opened, info)
	r.opened = info
	restarted, err := r.collect.ReadGrowth(ctx, file, info.Size(), another)
	switch {
	case restarted && another:
		watch.Note(r.Name + " is another file now, which is read from its beginning")
	case restarted:
		watch.Note(r.Name + " was written anew and is read from its beginning")
	}
	return err
}
