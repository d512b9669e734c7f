package safety

import (
	"context"
	"iter"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// Fleet is where sandboxes are asked to end; a *fleet.Fleet is one.
type Fleet interface {
	Terminate(ctx context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending]
}

// Options say which verb ends sandboxes, and how.
type Options struct {
	// Verb decides which rules bind (see Binding). An unknown one is bound by all.
	Verb Verb
	// How is the request. Its Recheck.Judge is what the verb itself demands of a sandbox
	// just before the end, after the rules of this room. Recheck.Skip and VerifyOnly are
	// set here: no caller decides that it need not look.
	How fleet.EndOptions
	// Protected says why a sandbox may not be ended; "" = it may. Where protection binds
	// the verb, nil keeps everything.
	Protected func(sandbox.Sandbox) string
	// Choice says how a target was chosen. Nil = a rule has chosen all of them.
	Choice func(sandbox.Ref) Choice
}

// End ends sandboxes: each is read just before, held against the rules that bind the
// verb, asked once, and looked at until its end is seen. Each distinct target comes out
// once (see fleet.Fleet.Terminate). It is the one way in which a sandbox is ended.
func End(ctx context.Context, f Fleet, targets []sandbox.Sandbox, o Options) iter.Seq[sandbox.Ending] {
	how := o.How
	how.VerifyOnly, how.Recheck.Skip = false, ""
	if c := Binding(o.Verb, RuleRecheck); !c.Binds() {
		how.Recheck.Skip = c.Why
	}
	own := how.Recheck.Judge
	how.Recheck.Judge = func(now sandbox.Sandbox) (sandbox.Outcome, string) {
		if outcome, why := o.judge(now); outcome != "" || own == nil {
			return outcome, why
		}
		return own(now)
	}
	unreadable := how.Recheck.AllowUnreadable
	how.Recheck.AllowUnreadable = func(target sandbox.Sandbox) bool {
		return unreadable != nil && o.verbFor(target.Ref()) == VerbTerminateDelete && o.choice(target.Ref()) == ByReference && unreadable(target)
	}
	return f.Terminate(ctx, targets, how)
}

// Verify finds out whether sandboxes have ended that somebody else has asked to: nothing
// is sent.
func Verify(ctx context.Context, f Fleet, targets []sandbox.Sandbox) iter.Seq[sandbox.Ending] {
	return f.Terminate(ctx, targets, fleet.EndOptions{VerifyOnly: true})
}

// judge applies the rules of this room to what was read just before the end.
func (o Options) judge(now sandbox.Sandbox) (sandbox.Outcome, string) {
	verb := o.verbFor(now.Ref())
	if Binding(verb, RuleProtected).Binds() {
		if o.Protected == nil {
			return sandbox.OutcomeSkipped, "protected: nothing says what is not"
		}
		if why := o.Protected(now); why != "" {
			return sandbox.OutcomeSkipped, why
		}
	}
	if Binding(verb, RuleClock).Binds() && !Trusted(now.ClockSkew) {
		return sandbox.OutcomeNotAttempted, "not asked: " + untrusted(now.Provider, now.ClockSkew)
	}
	return "", ""
}

func (o Options) choice(ref sandbox.Ref) Choice {
	if o.Choice == nil {
		return ByRule
	}
	return o.Choice(ref)
}

// verbFor is the column of the table that one target falls under: what a pipe has named
// is bound by more.
func (o Options) verbFor(ref sandbox.Ref) Verb {
	switch {
	case o.Verb != VerbTerminate:
		return o.Verb
	case !o.choice(ref).ByHand():
		return VerbTerminatePiped
	case o.How.Delete:
		return VerbTerminateDelete
	}
	return VerbTerminate
}
