package fleet

import (
	"cmp"
	"context"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// asking is what is queried beside the signs of life.
type asking struct {
	exit, probe, events bool
	samples             []sandbox.Usage // of the caller; they are used where the provider stores none
}

// observeLife queries what shows life, the usage only where it is not known yet. look is
// providers.Look of ctx.
//
// What reaches into the sandbox is asked in turn, first its usage, then its processes, and the rest at
// once: one definite answer, or none, ends the look (see settle), and no other query waits for a sandbox
// that is dead or hangs.
func (f *Fleet) observeLife(ctx, look context.Context, o *Observation, asks asking) {
	s := o.Sandbox
	troubles := s.Troubles
	defer func() { o.Sandbox.Troubles = troubles }() // no query reads it any more
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { f.observeHistory(ctx, o) })
	if !s.State.Ended() {
		wg.Go(func() { o.Work.Got, o.Work.Err = f.Activity(ctx, s) })
	}
	usage := func(ctx context.Context) { o.Usage = f.readSamples(ctx, s, o.CapturesOutput, asks.samples) }
	if o.Usage.Err == nil && o.Usage.Got == nil {
		usage(look)
	}
	if asks.events { // before a command runs inside: some engines remember few events, and each command makes some
		wg.Go(f.eventsOf(ctx, o, settling(o.Usage.Err)))
	}
	running := s.State == sandbox.StateRunning
	if !fault.SettlesLook(o.Usage.Err) && running {
		o.Processes.Got, o.Processes.Err = f.Processes(look, s.Ref())
		troubles = f.troublesOf(look, s)
	}
	end := cmp.Or(settling(o.Usage.Err), settling(o.Processes.Err))
	if end != nil {
		if f.settle(ctx, look, o, end, asks.exit); o.Health.Err != nil || o.Health.Got.Verdict != sandbox.True {
			return
		}
		// It answers again: that it did not was true for a moment only.
		o.Health.Err = errNotAsked
		usage(ctx)
		if running {
			o.Processes.Got, o.Processes.Err = f.Processes(ctx, s.Ref())
		}
		look = ctx
	}
	if len(o.Logs.Got) == 0 || o.Logs.Err != nil { // else this look has read it before
		o.logsAt = f.o.Now()
		wg.Go(func() { o.Logs = f.Tail(look, s.Ref(), tailLines) })
	}
	if asks.exit {
		wg.Go(func() { o.Exit.Got, o.Exit.Err = f.Exit(look, s.Ref()) })
	}
	if asks.probe || running && o.Processes.Err != nil { // no other query has reached it
		wg.Go(func() { o.Health = f.probeRepeatedly(look, s) })
	}
}

// troublesOf are the troubles of the listing, or those that the provider reports of a sandbox alone. They condemn nothing, so
// that a failure is none of the look.
func (f *Fleet) troublesOf(ctx context.Context, s sandbox.Sandbox) []sandbox.Trouble {
	if found, err := callAbility(ctx, f, s.Ref(), "troubles", providers.TroubleReader.Troubles); err == nil {
		return found
	}
	return s.Troubles
}

// eventsOf reads the events of a sandbox, unless its provider does not answer: they are kept outside of it.
func (f *Fleet) eventsOf(ctx context.Context, o *Observation, end error) func() {
	return func() {
		if end != nil && !fault.AboutOneSandbox(end) {
			o.Events.Err = skippedError{end}
			return
		}
		o.Events.Got, o.Events.Err = f.Events(ctx, o.Sandbox.Ref())
	}
}

// probeRepeatedly probes until the sandbox answers, or as many probes in a row have failed as
// prove that it does not. A probe that could not be made ends it: what is unknown stays unknown.
func (f *Fleet) probeRepeatedly(ctx context.Context, s sandbox.Sandbox) Part[providers.Health] {
	tries := 1
	if s.State == sandbox.StateRunning {
		tries = f.o.Thresholds(s).FailedProbes
	}
	for n := 1; ; n++ {
		health, err := f.Probe(ctx, s.Ref())
		if err != nil || health.Verdict != sandbox.False || n >= tries {
			return Part[providers.Health]{health, err}
		}
		if err := poll.Sleep(ctx, probeInterval); err != nil {
			return Part[providers.Health]{health, err}
		}
	}
}
