package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/reconcile"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// planAct reads what an act would do now.
func (r *runner) planAct(ctx context.Context, s runbook.Step, possible runbook.Word) (*actPlan, error) {
	defer r.leave()()
	switch {
	case s.Act.Action == "terminate":
		return r.planTerminate(ctx, s, possible)
	case s.Act.Action == "stop":
		return r.planStop(ctx, *s.Act, possible)
	case s.Act.Action == "reconcile":
		return r.planReconcile(ctx, *s.Act)
	case s.Act.Emergency:
		return r.planEmergency(ctx, s)
	}
	return r.planCleanup(ctx, *s.Act)
}

func (r *runner) planTerminate(ctx context.Context, s runbook.Step, possible runbook.Word) (*actPlan, error) {
	p, a := &actPlan{Act: &ops.Act{Verb: "terminate"}}, *s.Act
	c, err := r.choose(ctx, a, possible)
	if p.kept, p.none = c.kept, c.none; err != nil || len(c.refs) == 0 {
		return p, err
	}
	req := end.TerminateRequest{
		Words: c.refs, Yes: true, Grace: end.EndGrace, Production: r.req.Production, Line: r.req.Line, Reason: r.reasonOf(s, possible), Shown: true,
	}
	if a.Targets == "named" {
		req.Typed = c.refs
	}
	act, err := end.PlanTerminate(ctx, r.env, req)
	if err != nil {
		return p, err
	}
	for i, one := range act.Targets {
		act.Targets[i].Reason = cmp.Or(c.why[one.Ref.String()], one.Reason)
		act.Targets[i].Cause = c.cause[one.Ref.String()]
	}
	if p, err = p.take(act); err != nil || r.run.Word != "" { // to name one is the decision
		return p, err
	}
	return p, r.partUnowned(p, func(profile config.Profile, one ops.PlannedEnd) bool {
		return profile.Owned.Owns(one.Sandbox.Labels)
	})
}

// partUnowned takes what is not owned out of the targets: a person is asked for it by itself. Where none watches it
// stays, as in a cleanup, unless the flag allows it: that a runbook has found a cause is no decision about what is
// another's.
func (r *runner) partUnowned(p *actPlan, owned func(config.Profile, ops.PlannedEnd) bool) error {
	if r.req.Unowned && !r.watch.Attended() {
		return nil
	}
	c, err := r.env.Config()
	if err != nil {
		return err
	}
	p.Targets = slices.DeleteFunc(slices.Clone(p.Targets), func(one ops.PlannedEnd) bool {
		profile, known := c.Find(cmp.Or(one.Ref.Provider, one.Ref.ID))
		if known && owned(profile, one) {
			return false
		}
		if r.watch.Attended() {
			p.addUnowned(p.Act, one)
		} else {
			p.kept = append(
				p.kept,
				Target{
					Ref: one.Ref.String(), Reason: "unattended, a runbook acts only on what is yours, or with --unowned: " + r.env.OwnHint([]string{profile.Name}),
					KeptBecause: cleanup.KeepNotOwned.Label(),
				},
			)
		}
		return true
	})
	return nil
}

// addUnowned adds a target that a person is asked for by itself, and that the act ends.
func (p *actPlan) addUnowned(act *ops.Act, one ops.PlannedEnd) {
	if p.unowned == nil {
		part := *act
		part.Targets = nil
		p.unowned = &part
	}
	p.unowned.Targets = append(p.unowned.Targets, one)
}

// take makes a plan of an act, or says why nothing could be read.
func (p *actPlan) take(act *ops.Act) (*actPlan, error) {
	p.Act = act
	for i, one := range act.Kept { // all that were found, and some of the others
		if i < maxShown || one.KeptBecause != "" {
			p.kept = append(p.kept, recorded(act.Kept[i:i+1])...)
		}
	}
	return p, act.Failed
}

// reasonOf says in the record of an end which step of which run wanted it.
func (r *runner) reasonOf(s runbook.Step, possible runbook.Word) string {
	reason := fmt.Sprintf("runbook %s, step %s, run %s", r.run.Runbook, s.ID, r.run.ID)
	if possible != "" {
		reason += ": " + triage.PossibleCauseLabel(string(possible))
	}
	return reason
}

func outcomes(endings []sandbox.Ending) []Outcome {
	all := make([]Outcome, len(endings))
	for i, e := range endings {
		all[i] = Outcome{e.Ref.String(), e.Outcome, e.Reason}
	}
	return all
}

// productionOf are the production profiles, those that were named first: a plan may be about all of
// them, and the gate asks for the names.
func (r *runner) productionOf() []string {
	all := slices.Clone(r.req.Production)
	if c, err := r.env.Config(); err == nil {
		for _, name := range c.Production {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// cleanupRequest is the act as `sbx cleanup` takes it.
func (r *runner) cleanupRequest(a runbook.Act) (end.CleanupRequest, error) {
	req := end.CleanupRequest{Profiles: r.req.Profiles, Production: r.productionOf(), Line: r.req.Line, Grace: end.EndGrace}
	req.Rule.IncludeFailed = a.IncludeFailed
	o := selector.Options{Now: r.env.Now(), Stuck: a.Stuck || a.OlderThan == "" && a.Where == ""}
	if a.OlderThan != "" {
		o.OlderThan = new(r.fill(a.OlderThan))
	}
	if a.Where != "" {
		o.Where = new(r.fill(string(a.Where)))
	}
	var err error
	if req.Rule.Selector, err = selector.Compile(o); err != nil {
		return req, err
	}
	if a.IdleFor != "" {
		if req.Rule.IdleFor, err = sandbox.ParseDuration(r.fill(a.IdleFor)); err != nil {
			return req, err
		}
	}
	if a.IfUsageAbove != "" {
		share, err := config.ParsePercent(r.fill(a.IfUsageAbove))
		if err != nil {
			return req, err
		}
		req.UsageAbove = int(share)
	}
	return req, nil
}

func (r *runner) planCleanup(ctx context.Context, a runbook.Act) (*actPlan, error) {
	p := &actPlan{Act: &ops.Act{Verb: "terminate"}}
	req, err := r.cleanupRequest(a)
	if err != nil {
		return p, err
	}
	req.Rule.Unowned = r.req.Unowned && !r.watch.Attended()
	seen, err := end.PlanCleanup(ctx, r.env, req, r.reading)
	if err != nil {
		return p, err
	}
	act := seen.Act()
	r.prepareCounting(a, act)
	if p, err = p.take(act); !r.asksForUnowned(act) {
		return p, err
	}
	req.Rule.Unowned = true
	if seen, err = end.PlanCleanup(ctx, r.env, req, r.reading); err != nil {
		return p, err
	}
	all := seen.Act()
	r.prepareCounting(a, all)
	for _, one := range all.Targets {
		if !slices.ContainsFunc(act.Targets, func(ours ops.PlannedEnd) bool { return ours.Ref == one.Ref }) {
			p.addUnowned(all, one)
		}
	}
	act.Unowned, act.Objection = 0, ""
	p.kept = slices.DeleteFunc(p.kept, func(k Target) bool { return k.KeptBecause == cleanup.KeepNotOwned.Label() })
	return p, nil
}

// asksForUnowned says that a person is asked for what an act keeps since it is not owned.
func (r *runner) asksForUnowned(act *ops.Act) bool {
	return r.watch.Attended() && slices.ContainsFunc(act.Kept, func(k ops.PlannedEnd) bool { return k.KeptBecause == cleanup.KeepNotOwned.Label() })
}

// prepareCounting puts what is wrong with each target before its reason. Only the number of what is stuck may be typed
// in place of a flag, and not beyond one that was given: a rule of ages or conditions may select what its author did not
// think of.
func (r *runner) prepareCounting(a runbook.Act, act *ops.Act) {
	for i, t := range act.Targets {
		act.Targets[i].Reason = triage.WithCause(t.Cause, t.Reason)
	}
	if a.OlderThan != "" || a.Where != "" || r.req.MaxDelete > 0 {
		act.Allow = ""
	}
}

// planEmergency lets providers clean up by their own rules: those for which the condition of the step
// holds. A person names each.
func (r *runner) planEmergency(ctx context.Context, s runbook.Step) (*actPlan, error) {
	var targets []ops.PlannedEnd
	for _, name := range r.facts.names {
		holds, why := sandbox.True, ""
		if s.When != "" {
			holds, why = r.holdsFor(ctx, s.When, name)
		}
		if holds == sandbox.True {
			targets = append(targets, ops.PlannedEnd{Ref: sandbox.Ref{ID: name}, Reason: why})
		}
	}
	p := &actPlan{Act: &ops.Act{Targets: targets}, byName: true}
	if !r.watch.Attended() { // a person types the name of each
		if err := r.partUnowned(p, func(profile config.Profile, _ ops.PlannedEnd) bool { return profile.Owned.All }); err != nil {
			return p, err
		}
	}
	p.Act = end.PlanEmergency(r.env, end.CleanupRequest{Profiles: p.profiles(), Line: r.req.Line}, p.Targets)
	return p, nil
}

func (r *runner) planReconcile(ctx context.Context, a runbook.Act) (*actPlan, error) {
	p := &actPlan{Act: &ops.Act{Verb: "repair"}}
	req := end.ReconcileRequest{Rules: reconcile.DefaultRules(), Records: string(a.Records), Production: r.productionOf(), Line: r.req.Line}
	seen, err := end.Reconcile(ctx, r.env, req, r.reading)
	if err != nil {
		return p, err
	}
	return p.take(seen.Act())
}

// planStop stops the tasks of sandboxes, or the task that was named.
func (r *runner) planStop(ctx context.Context, a runbook.Act, possible runbook.Word) (*actPlan, error) {
	words, none, err := r.tasksToStop(ctx, a, possible)
	p := &actPlan{Act: &ops.Act{Verb: "stop"}, none: none}
	if err == nil && len(words) > 0 {
		p.Act, err = launch.PlanStop(ctx, r.env, launch.StopRequest{Tasks: words, Line: r.req.Line})
	}
	return p, err
}

// tasksToStop are the tasks that an act is about. A sandbox without one cannot be stopped that way.
func (r *runner) tasksToStop(ctx context.Context, a runbook.Act, possible runbook.Word) (words []string, none string, err error) {
	c, err := r.choose(ctx, a, possible)
	if err != nil || len(c.refs) == 0 {
		return nil, c.none, err
	}
	if a.Targets == "named" && task.IsID(r.run.Word) {
		return []string{r.run.Word}, "", nil
	}
	plan, err := end.PlanTerminate(ctx, r.env, end.TerminateRequest{Words: c.refs, Typed: c.refs, Shown: true})
	if err != nil {
		return nil, "", err
	}
	for _, one := range slices.Concat(plan.Targets, plan.Kept) {
		if id := one.Sandbox.TaskID; task.IsID(id) && !slices.Contains(words, id) {
			words = append(words, id)
		}
	}
	if a.Targets == "named" && len(words) == 0 {
		return c.refs, "", nil // the key of a task
	}
	return words, "", nil
}
