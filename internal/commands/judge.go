package commands

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	tailLines   = 200                    // read for the rules: four times the 50 that they compare with each other
	sampleEvery = 300 * time.Millisecond // between two samples: enough for a rate, short enough to wait for
)

// part is one thing that was asked of a provider: the answer, or why there is
// none.
type part[T any] struct {
	got T
	err error
}

// missing says in one line why there is no answer.
func (p part[T]) missing() string {
	text := p.err.Error()
	if f, ok := errors.AsType[*fault.Error](p.err); ok && f.Err != nil {
		text = f.Err.Error()
	}
	if fault.KindOf(p.err) == fault.KindUnsupported {
		return "cannot be known: " + text
	}
	return "could not be read: " + text
}

// observation is what was seen of one sandbox beside its record.
type observation struct {
	box    sandbox.Sandbox
	usage  part[[]sandbox.Usage]
	health part[providers.Health]
	events part[[]sandbox.Event]
	logs   part[[]sandbox.LogLine]
	exit   part[*sandbox.Exit] // of the program that create started, where the record has none
	work   part[providers.Activity]
}

// observe asks for everything at once. It changes nothing.
func observe(ctx context.Context, f *fleet.Fleet, s sandbox.Sandbox) observation {
	o := observation{box: s}
	ref := s.Ref()
	var wg sync.WaitGroup
	wg.Go(func() { o.usage = sampled(ctx, f, s) })
	wg.Go(func() { o.health.got, o.health.err = f.Probe(ctx, ref) })
	wg.Go(func() { o.events.got, o.events.err = f.Events(ctx, ref) })
	wg.Go(func() { o.logs = tail(ctx, f, ref) })
	if s.Exit == nil {
		wg.Go(func() { o.exit.got, o.exit.err = f.Exit(ctx, ref) })
	}
	if !s.State.Ended() {
		wg.Go(func() { o.work.got, o.work.err = f.Activity(ctx, ref) })
	}
	wg.Wait()
	if o.exit.got != nil {
		o.box.Exit = o.exit.got
	}
	if last := o.work.got.LastWorkAt; last.After(o.box.LastActivityAt) { // a heartbeat is no work
		o.box.LastActivityAt = last
	}
	return o
}

// sampled takes two samples of what runs, so that rates are known, and one of
// what does not.
func sampled(ctx context.Context, f *fleet.Fleet, s sandbox.Sandbox) part[[]sandbox.Usage] {
	n := 1
	if s.State == sandbox.StateRunning {
		n = 2
	}
	var p part[[]sandbox.Usage]
	for round := range f.Samples(ctx, []sandbox.Ref{s.Ref()}, n, sampleEvery) {
		if p.err = round.Samples[0].Err; p.err != nil {
			return p
		}
		p.got = append(p.got, round.Samples[0].Usage)
	}
	if len(p.got) < n {
		p.err = context.Cause(ctx)
	}
	return p
}

// tail reads the last lines and holds no more than twice as many, whatever the
// provider makes of the wish.
func tail(ctx context.Context, f *fleet.Fleet, ref sandbox.Ref) part[[]sandbox.LogLine] {
	var p part[[]sandbox.LogLine]
	for line, err := range f.Logs(ctx, ref, providers.LogQuery{Tail: tailLines}) {
		if err != nil {
			p.err = err
			break
		}
		if len(p.got) == 2*tailLines {
			p.got = append(p.got[:0], p.got[tailLines:]...)
		}
		p.got = append(p.got, line)
	}
	p.got = p.got[max(0, len(p.got)-tailLines):]
	return p
}

// errs are the parts that failed; an ability that is missing is no failure.
func (o observation) errs(ctx context.Context) []error {
	exit, work := o.exit.err, o.work.err
	if fault.KindOf(exit) == fault.KindNotFound {
		exit = nil // sbx started no program in it
	}
	if fault.KindOf(work) == fault.KindNotFound {
		work = nil // nobody ever heard of it
	}
	all := []error{o.usage.err, o.health.err, o.events.err, o.logs.err, exit, work}
	return once(ctx, slices.DeleteFunc(all, func(err error) bool {
		return err == nil || fault.KindOf(err) == fault.KindUnsupported
	}))
}

// once says a single time that ctx ended, instead of once for each thing that
// failed because of it.
func once(ctx context.Context, errs []error) []error {
	if ctx.Err() == nil {
		return errs
	}
	errs = slices.DeleteFunc(errs, func(err error) bool {
		kind := fault.KindOf(err)
		return kind == fault.KindCanceled || kind == fault.KindTerminated || kind == fault.KindTimeout
	})
	return append(errs, context.Cause(ctx))
}

// signals are what the rules may use: nothing of a part that failed, so that
// what is not known stays unknown.
func (o observation) signals(t triage.Thresholds, tracksTasks bool) triage.Signals {
	sig := triage.Signals{Exists: sandbox.True, TracksTasks: tracksTasks}
	if o.usage.err == nil {
		trend := triage.TrendOf(o.usage.got, t)
		sig.Trend = &trend
	}
	if o.logs.err == nil {
		found := triage.ReadLines(triage.NewMatcher(), o.logs.got)
		sig.Logs = &found
	}
	if o.health.err == nil {
		sig.Answers, sig.Agrees = o.health.got.Verdict, agrees(o.box.State, o.health.got.Verdict)
	}
	return sig
}

// agrees compares the record with what the probe found (ACCEPTANCE R95).
func agrees(state sandbox.State, answers sandbox.Verdict) sandbox.Verdict {
	switch {
	case answers != sandbox.True && answers != sandbox.False:
		return sandbox.Unknown
	case state == sandbox.StateRunning:
		return answers
	case state.Ended():
		return sandbox.VerdictOf(answers == sandbox.False)
	}
	return sandbox.Unknown
}

// tracksTasks says that a profile would name the task of a sandbox if there
// were one: whoever creates sandboxes keeps what they were created for.
func tracksTasks(f *fleet.Fleet, profile string) bool {
	for _, row := range f.Abilities() {
		if row.Provider == profile {
			return slices.ContainsFunc(row.Abilities, func(a fleet.AbilityCell) bool { return a.Name == "create" && a.Has })
		}
	}
	return false
}
