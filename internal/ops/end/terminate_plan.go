package end

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// PlanTerminate plans the end of the sandboxes that words name; it changes nothing. Each is read again just before its
// end, asked once, and looked at until its end is seen. Items of Do are of types RunStarted, error (a word that named
// nothing) and sandbox.Ending. An error is a wrong use: nothing was called, or no word can be a reference.
func PlanTerminate(ctx context.Context, env *ops.Env, req TerminateRequest) (*ops.Act, error) {
	if err := env.MayChange(); err != nil && !req.Shown {
		return nil, err
	}
	t := &termination{env: env, req: req, id: env.RunID(), effect: safety.Ending()}
	t.sort = t.plannedEnds
	return t.plan(ctx, &ops.Act{Verb: runs.VerbTerminate, Execute: t.execute, Rehearse: t.rehearse})
}

// plan fills in an act of a verb that takes references: its targets, its limits and what it asks.
func (t *termination) plan(ctx context.Context, act *ops.Act) (*ops.Act, error) {
	act.RunID, act.At, act.Line, act.Named = t.id, t.env.Now(), t.req.Line, t.req.Production
	act.Guards, act.Refused = []safety.Guard{}, t.env.MayChange()
	failed := t.findTargets(ctx)
	if fault.KindOf(failed) == fault.KindUsage {
		return nil, failed
	}
	act.Errors = append(t.lost, failed)
	act.Targets, act.Kept = t.sort()
	if failed != nil {
		act.Refused, act.Verdict, act.Failed = ops.CauseOr(ctx, failed), failed, failed
		return act, nil
	}
	act.Guards, act.Verdict = t.runGuards(), t.planVerdict()
	if kind := fault.KindOf(act.Verdict); len(t.targets) == 0 && kind != fault.KindNone && kind != fault.KindNotFound && kind != fault.KindGone {
		act.Failed = act.Verdict
	}
	switch {
	case !t.req.Shown:
		t.ask(act)
	case act.Rehearse != nil:
		act.Rehearse(ctx, act)
	}
	return act, nil
}

// runGuards are the limits of this run. What a person could still allow by an answer is not
// ok before that.
func (t *termination) runGuards() []safety.Guard {
	out := []safety.Guard{safety.UnaskedGuard(len(t.targets), t.req.Yes, t.countsByProfile(), t.effect)}
	for _, name := range t.targetProfiles() {
		chosen := t.choicesOf(name)
		if t.limits.IsProduction(name) {
			out = append(out, t.limits.ProductionGuard(name, safety.Unnamed(chosen), t.effect))
		}
		if skew, _ := t.fleet.Skew(name); skew != 0 && slices.Contains(chosen, safety.ByRule) {
			g := safety.ClockGuard(name, skew)
			g.Advice += ", or name each by hand"
			out = append(out, g)
		}
	}
	return out
}

// targetProfiles names those of the targets, in the order of their names.
func (t *termination) targetProfiles() []string {
	var names []string
	for _, s := range t.targets {
		names = append(names, s.Provider)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func (t *termination) choicesOf(profile string) []safety.Choice {
	var chosen []safety.Choice
	for _, s := range t.targets {
		if s.Provider == profile {
			chosen = append(chosen, t.choiceOf(s.Ref()))
		}
	}
	return chosen
}

// countsByProfile counts the targets: "local 2, prod 5".
func (t *termination) countsByProfile() string {
	names := t.targetProfiles()
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, len(t.choicesOf(name)))
	}
	return strings.Join(names, ", ")
}

// ask makes questions of what people can answer, and refuses the whole run where a guard still says no.
func (t *termination) ask(act *ops.Act) {
	least, counted, names := safety.AskNothing, 0, []string{}
	guards := map[string]safety.Guard{} // by their answers
	for _, g := range act.Guards {
		switch {
		case g.OK:
			continue
		case g.Answer == "":
			act.Refused = cmp.Or(act.Refused, t.guardRefusal(g))
		case t.limits.IsProduction(g.Answer):
			names = append(names, g.Answer)
		default:
			counted = len(t.targets)
		}
		guards[g.Answer] = g
	}
	if t.begun > 0 {
		least = safety.AskYes
	}
	for _, word := range safety.Answers(least, counted, names) {
		question := ops.NewQuestion(word, act.Verb+" them")
		if g, is := guards[word]; is {
			question.Objection, question.Refusal = g.Objection, t.guardRefusal(g)
		}
		act.Asks = append(act.Asks, question)
	}
}

func (t *termination) guardRefusal(g safety.Guard) error {
	hint := g.Advice
	if flag := g.OverrideFlag(); flag != "" {
		hint = "to do it: " + safety.RetryLine(t.req.Line, []string{flag})
	}
	return fault.New(fault.KindRefused, "%s", g.Objection).WithHint("%s", hint)
}

// rehearse asks providers that can say it which ends they would refuse. A rehearsal is a request to end with a flag,
// so that --read-only sends none.
func (t *termination) rehearse(ctx context.Context, act *ops.Act) {
	if t.refused != nil || len(act.Targets) == 0 || t.env.MayChange() != nil {
		return
	}
	targets := make([]sandbox.Sandbox, len(act.Targets))
	for i, one := range act.Targets {
		targets[i] = one.Sandbox
	}
	t.refused = t.fleet.Rehearse(ctx, targets, fleet.EndOptions{Delete: t.req.Delete, Grace: t.req.Grace, FullGrace: t.req.FullGrace})
	act.Targets, act.Kept = t.plannedEnds()
}

// plannedEnds sorts the targets by what would become of them.
func (t *termination) plannedEnds() (selected, kept []ops.PlannedEnd) {
	selected, kept = []ops.PlannedEnd{}, []ops.PlannedEnd{}
	for _, s := range t.targets {
		why := t.protectionReason(s)
		switch {
		case why != "":
		case t.isAnother(s):
			why = anotherHere
		case s.State == "":
			why = "it is gone already"
		case s.State.Ended() && !t.req.Delete:
			why = "it has ended already"
		case s.State == sandbox.StateStopped && !t.req.Delete:
			why = "needs_delete: it is stopped; only --delete removes it"
		case t.refused[s.Ref()] != "":
			why = t.refused[s.Ref()]
		default:
			selected = append(selected, ops.PlannedEnd{Ref: s.Ref(), Reason: t.planReason(s), Sandbox: s})
			continue
		}
		kept = append(kept, ops.PlannedEnd{Ref: s.Ref(), Reason: why, Sandbox: s})
	}
	return selected, kept
}

// planReason is why a sandbox is in the plan, and what its end leaves open.
func (t *termination) planReason(s sandbox.Sandbox) string {
	reason := t.reason() + "; " + string(s.State)
	if s.EndNote != "" && !t.req.Delete {
		reason += "; " + s.EndNote
	}
	return reason
}

// planVerdict is about what could not be found: a plan that a guard would refuse is a
// good plan.
func (t *termination) planVerdict() error {
	seen := make([]sandbox.Ending, len(t.targets))
	for i, s := range t.targets {
		seen[i] = sandbox.Ending{Ref: s.Ref(), Outcome: sandbox.OutcomeVerified}
	}
	return t.endingsVerdict(seen)
}
