// Package safety decides who may end which sandbox, and is the only way in which sandboxes
// are ended.
//
// It holds the limits of a run (guards), the reasons to keep a single sandbox (protection,
// the lease of a task, a wrong clock, the read just before the end) and the table of which
// rule binds which verb. Requesting and verifying an end is in fleet; the selection of
// sandboxes is in the package of each verb. Configuration and stores are handed in.
package safety

import (
	"context"
	"iter"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// Fleet ends sandboxes; a *fleet.Fleet is one.
type Fleet interface {
	Terminate(ctx context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending]
}

// Options are which verb ends sandboxes, and how.
type Options struct {
	// Verb decides which rules bind (see Binding). All rules bind an unknown verb.
	Verb Verb
	// How is the request. Its Recheck.Judge is what the verb itself demands of a sandbox
	// just before the end, after the rules of this package. Recheck.Skip and VerifyOnly are
	// set here: no caller can skip the read.
	How fleet.EndOptions
	// Protected is why a sandbox may not be ended; "" = it may. Where protection binds the
	// verb, nil keeps everything.
	Protected func(sandbox.Sandbox) string
	// Choice is how a target was chosen. Nil = all were chosen by a rule.
	Choice func(sandbox.Ref) Choice
	// Record is the journal of the run by a rule that the caller has begun; nil = Open begins one.
	Record *runs.Writer
	// Open begins the journal of ends that are no run by a rule. Nil = none is kept.
	Open runs.Opener
	// Describe adds to an intent what the verb knows of the sandbox; nil = nothing. It is called concurrently.
	Describe func(*runs.Intent)
}

// End ends sandboxes: each is read just before, checked by the rules that bind the verb, written to the
// journal, its end requested once, and awaited until it is seen. Each distinct target comes out once
// (see fleet.Fleet.Terminate), and its outcome is in the journal then. Sandboxes are ended in no other way.
func End(ctx context.Context, f Fleet, targets []sandbox.Sandbox, o Options) iter.Seq[sandbox.Ending] {
	how := o.How
	how.VerifyOnly, how.Recheck.Skip = false, ""
	if c := Binding(o.Verb, RuleRecheck); !c.Binds() {
		how.Recheck.Skip = c.Why
	}
	own := how.Recheck.Judge
	how.Recheck.Judge = func(now sandbox.Sandbox) (sandbox.Outcome, string) {
		if outcome, why := o.judgeTarget(now); outcome != "" || own == nil {
			return outcome, why
		}
		return own(now)
	}
	unreadable := how.Recheck.AllowUnreadable
	how.Recheck.AllowUnreadable = func(target sandbox.Sandbox) bool {
		return unreadable != nil && o.verbFor(target.Ref()) == VerbTerminateDelete && o.choiceOf(target.Ref()) == ByReference && unreadable(target)
	}
	return func(yield func(sandbox.Ending) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		record, finish := o.openRecord(ctx, targets)
		defer finish()
		taken := true
		for e := range f.Terminate(ctx, targets, o.recorded(how, record)) {
			_ = record.Result(e)    // the end of the journal reports it
			if taken && !yield(e) { // the others are not begun, and what has begun is recorded
				taken = false
				stop()
			}
		}
	}
}

// openRecord is the journal of the run, or one for these ends alone, which finish closes.
func (o Options) openRecord(ctx context.Context, targets []sandbox.Sandbox) (record *runs.Writer, finish func()) {
	switch {
	case o.Record != nil:
		return o.Record, func() {}
	case o.Open == nil || len(targets) == 0:
		return &runs.Writer{Policy: runs.BestEffort}, func() {}
	}
	run := o.Open(ctx, targets)
	return run.Writer, func() { run.FinishEnds(ctx) }
}

// recorded writes each intent and answer to a journal.
func (o Options) recorded(how fleet.EndOptions, record *runs.Writer) fleet.EndOptions {
	before, after := how.Before, how.After
	how.Before = func(ctx context.Context, s sandbox.Sandbox, del bool) error {
		if before != nil {
			if err := before(ctx, s, del); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i := runs.IntentOf(s, del)
		if o.Describe != nil {
			o.Describe(&i)
		}
		return fault.Placed(record.Intent(i), s.Provider, "journal of "+s.ID+", so nothing was requested")
	}
	how.After = func(ref sandbox.Ref, r sandbox.EndRequest) {
		_ = record.Answer(ref, r) // the end of the journal reports it
		if after != nil {
			after(ref, r)
		}
	}
	return how
}

// Verify finds out whether sandboxes have ended whose end was requested elsewhere: nothing
// is sent.
func Verify(ctx context.Context, f Fleet, targets []sandbox.Sandbox) iter.Seq[sandbox.Ending] {
	return f.Terminate(ctx, targets, fleet.EndOptions{VerifyOnly: true})
}

// judgeTarget applies the rules of this package to the read just before the end.
func (o Options) judgeTarget(now sandbox.Sandbox) (sandbox.Outcome, string) {
	verb := o.verbFor(now.Ref())
	if Binding(verb, RuleProtected).Binds() {
		if o.Protected == nil {
			return sandbox.OutcomeSkipped, "protected: the protection settings are not available"
		}
		if why := o.Protected(now); why != "" {
			return sandbox.OutcomeSkipped, why
		}
	}
	if Binding(verb, RuleClock).Binds() && !Trusted(now.ClockSkew) {
		return sandbox.OutcomeNotAttempted, "not requested: " + untrustedClock(now.Provider, now.ClockSkew)
	}
	return "", ""
}

func (o Options) choiceOf(ref sandbox.Ref) Choice {
	if o.Choice == nil {
		return ByRule
	}
	return o.Choice(ref)
}

// verbFor is the column of the table for one target: more rules bind targets from a pipe.
func (o Options) verbFor(ref sandbox.Ref) Verb {
	switch {
	case o.Verb != VerbTerminate:
		return o.Verb
	case !o.choiceOf(ref).ByHand():
		return VerbTerminatePiped
	case o.How.Delete:
		return VerbTerminateDelete
	}
	return VerbTerminate
}
