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

	"sbx/internal/fleet"
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
}

// End ends sandboxes: each is read just before, checked by the rules that bind the verb,
// its end requested once, and awaited until it is seen. Each distinct target comes out once
// (see fleet.Fleet.Terminate). Sandboxes are ended in no other way.
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
	return f.Terminate(ctx, targets, how)
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
