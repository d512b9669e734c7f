package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/task"
)

// endGrace is the time between SIGTERM and SIGKILL, as in the commands.
const endGrace = 5 * time.Second

// planAct reads what an act would do now.
func (r *runner) planAct(ctx context.Context, s runbook.Step, theory runbook.Word) (*actPlan, error) {
	defer r.leave()()
	switch {
	case s.Act.Action == "terminate":
		return r.planTerminate(ctx, s, theory)
	case s.Act.Action == "stop":
		return r.planStop(ctx, *s.Act, theory)
	case s.Act.Action == "reconcile":
		return r.planReconcile(ctx, *s.Act)
	case s.Act.Emergency:
		return r.planEmergency(ctx, s)
	}
	return r.planCleanup(ctx, *s.Act)
}

func (r *runner) planTerminate(ctx context.Context, s runbook.Step, theory runbook.Word) (*actPlan, error) {
	p, a := &actPlan{verb: "terminate"}, *s.Act
	c, err := r.choose(ctx, a, theory)
	if p.kept, p.none = c.kept, c.none; err != nil || len(c.refs) == 0 {
		return p, err
	}
	req := ops.TerminateRequest{Words: c.refs, Yes: true, Grace: endGrace, Production: r.req.Production, Line: r.req.Line, Reason: r.reasonOf(s, theory)}
	if a.Targets == "named" {
		req.Typed = c.refs
	}
	plan, err := ops.PlanTerminate(ctx, r.env, req, r.reading)
	if err != nil {
		return p, err
	}
	if len(plan.Selected)+len(plan.Kept) == 0 && plan.Verdict != nil && fault.KindOf(plan.Verdict) != fault.KindNotFound && fault.KindOf(plan.Verdict) != fault.KindGone {
		return p, plan.Verdict // nothing could be read
	}
	p.take(plan.Selected, plan.Kept, c.why)
	p.do = func(ctx context.Context, watch ops.Observer, named []string) actResult {
		req.Words, req.Production = p.refs(), named
		if a.Targets == "named" {
			req.Typed = req.Words
		}
		done, err := ops.Terminate(ctx, r.env, req, watch)
		if err != nil {
			return actResult{err: err}
		}
		return actResult{done.RunID, outcomes(done.Endings), errors.Join(done.Refused, done.Verdict)}
	}
	return p, nil
}

// reasonOf says in the record of an end which step of which run wanted it.
func (r *runner) reasonOf(s runbook.Step, theory runbook.Word) string {
	reason := fmt.Sprintf("runbook %s, step %s, run %s", r.run.Runbook, s.ID, r.run.ID)
	if theory != "" {
		reason += ": " + string(theory)
	}
	return reason
}

// take makes targets of what a plan selects; why replaces its reasons.
func (p *actPlan) take(selected, kept []ops.PlannedEnd, why map[string]string) {
	for _, one := range selected {
		if reason := why[one.Ref.String()]; reason != "" {
			one.Reason = reason
		}
		p.shown = append(p.shown, one)
		p.targets = append(p.targets, Target{one.Ref.String(), one.Reason})
		if !slices.Contains(p.profiles, one.Ref.Provider) {
			p.profiles = append(p.profiles, one.Ref.Provider)
		}
	}
	for _, one := range kept {
		p.kept = append(p.kept, Target{one.Ref.String(), one.Reason})
	}
}

func (p *actPlan) refs() []string {
	var all []string
	for _, t := range p.targets {
		all = append(all, t.Ref)
	}
	return all
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
func (r *runner) cleanupRequest(a runbook.Act) (ops.CleanupRequest, error) {
	req := ops.CleanupRequest{Profiles: r.req.Profiles, Production: r.productionOf(), Line: r.req.Line, Grace: endGrace}
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
	p := &actPlan{verb: "terminate"}
	req, err := r.cleanupRequest(a)
	if err != nil {
		return p, err
	}
	seen, err := ops.PlanCleanup(ctx, r.env, req, r.reading)
	if err != nil {
		return p, err
	}
	plan := seen.Plan()
	var selected []ops.PlannedEnd
	for _, item := range plan.Items {
		selected = append(selected, ops.PlannedEnd{Ref: item.Ref, Reason: item.Reason, Sandbox: sandbox.Sandbox{Provider: item.Ref.Provider, ID: item.Ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt}})
	}
	p.take(selected, nil, nil)
	for _, j := range seen.Survey.Kept {
		if !j.Sandbox.State.Ended() && len(p.kept) < maxShown {
			p.kept = append(p.kept, Target{j.Sandbox.Ref().String(), string(j.KeepReason) + ": " + j.Reason})
		}
	}
	p.refused = cleanup.Refusal(seen.Guards, r.req.Line...)
	if p.refused == nil && len(p.targets) == 0 && seen.Verdict != nil {
		return p, seen.Verdict // nothing could be listed
	}
	p.do = func(ctx context.Context, watch ops.Observer, named []string) actResult {
		req.RunID, req.Plan, req.Yes, req.Production = seen.RunID, &plan, true, named
		done, err := ops.Cleanup(ctx, r.env, req, watch)
		if err != nil {
			return actResult{runID: seen.RunID, err: err}
		}
		return actResult{done.RunID, outcomes(done.Endings), done.Verdict}
	}
	return p, nil
}

// planEmergency lets providers clean up by their own rules: those for which the condition of the step
// holds. A person names each.
func (r *runner) planEmergency(ctx context.Context, s runbook.Step) (*actPlan, error) {
	p := &actPlan{verb: "run the emergency cleanup of", byName: true, objection: "a provider's emergency cleanup terminates everything that is not critical, also sandboxes at work"}
	for _, name := range r.facts.names {
		holds := sandbox.True
		if s.When != "" {
			holds = r.holdsFor(ctx, s.When, name)
		}
		if holds == sandbox.True {
			p.targets, p.profiles = append(p.targets, Target{name, string(s.When)}), append(p.profiles, name)
		}
	}
	p.do = func(ctx context.Context, watch ops.Observer, named []string) actResult {
		done, err := ops.Cleanup(ctx, r.env, ops.CleanupRequest{Profiles: p.profiles, Production: named, Emergency: true, Yes: true, Line: r.req.Line}, watch)
		if err != nil {
			return actResult{err: err}
		}
		return actResult{done.RunID, outcomes(done.Endings), done.Verdict}
	}
	return p, nil
}

func (r *runner) planReconcile(ctx context.Context, a runbook.Act) (*actPlan, error) {
	p := &actPlan{verb: "repair"}
	req := ops.ReconcileRequest{Rules: reconcileRules(), Records: string(a.Records), Production: r.productionOf(), Line: r.req.Line}
	seen, err := ops.Reconcile(ctx, r.env, req, r.reading)
	if err != nil {
		return p, err
	}
	var selected []ops.PlannedEnd
	for _, row := range seen.Plan.Acting() {
		selected = append(selected, ops.PlannedEnd{Ref: row.Ref, Reason: string(row.Action) + ": " + row.Reason, Sandbox: row.Box})
	}
	p.take(selected, nil, nil)
	for _, row := range seen.Plan.Rows {
		if row.Found() && !row.Action.Acts() {
			p.kept = append(p.kept, Target{row.Ref.String(), row.Reason})
		}
	}
	p.refused = seen.Plan.Refusal(seen.Limits, r.req.Line...)
	if len(p.targets) == 0 && len(seen.Plan.Sides) == 0 && len(seen.Plan.Errors) > 0 {
		return p, errors.Join(seen.Plan.Errors...)
	}
	p.do = func(ctx context.Context, watch ops.Observer, named []string) actResult {
		req.Fix, req.Rules.Observe, req.Production = true, true, named
		done, err := ops.Reconcile(ctx, r.env, req, watch)
		if err != nil {
			return actResult{err: err}
		}
		return actResult{done.RunID, outcomes(done.Endings), done.Verdict}
	}
	return p, nil
}

// planStop stops the tasks of sandboxes, or the task that was named.
func (r *runner) planStop(ctx context.Context, a runbook.Act, theory runbook.Word) (*actPlan, error) {
	p := &actPlan{verb: "stop"}
	words, none, err := r.tasksToStop(ctx, a, theory)
	if p.none = none; err != nil {
		return p, err
	}
	for _, w := range words {
		p.targets = append(p.targets, Target{w, "its task"})
	}
	p.objection = fmt.Sprintf("%d tasks would be stopped: they publish nothing from then on", len(words))
	p.do = func(ctx context.Context, watch ops.Observer, _ []string) actResult {
		stopped, err := ops.Stop(ctx, r.env, ops.StopRequest{Tasks: words}, watch)
		result := actResult{err: err}
		for _, s := range stopped {
			o := Outcome{Ref: s.Word, Outcome: sandbox.OutcomeVerified}
			switch {
			case s.Err != nil && s.Forbidden:
				o.Outcome, o.Reason = sandbox.OutcomeAccepted, s.Err.Error()
			case s.Err != nil:
				o.Outcome, o.Reason = sandbox.OutcomeFailed, s.Err.Error()
			case s.WasOver:
				o.Outcome, o.Reason = sandbox.OutcomeAlreadyGone, "it had ended before"
			}
			result.outcomes, result.err = append(result.outcomes, o), errors.Join(result.err, s.Err)
		}
		return result
	}
	return p, nil
}

// tasksToStop are the tasks that an act is about. A sandbox without one cannot be stopped that way.
func (r *runner) tasksToStop(ctx context.Context, a runbook.Act, theory runbook.Word) (words []string, none string, err error) {
	c, err := r.choose(ctx, a, theory)
	if err != nil || len(c.refs) == 0 {
		return nil, c.none, err
	}
	if a.Targets == "named" && task.IsID(r.run.Word) {
		return []string{r.run.Word}, "", nil
	}
	plan, err := ops.PlanTerminate(ctx, r.env, ops.TerminateRequest{Words: c.refs, Typed: c.refs}, r.reading)
	if err != nil {
		return nil, "", err
	}
	for _, one := range slices.Concat(plan.Selected, plan.Kept) {
		if id := one.Sandbox.TaskID; task.IsID(id) && !slices.Contains(words, id) {
			words = append(words, id)
		}
	}
	if a.Targets == "named" && len(words) == 0 {
		return c.refs, "", nil // the key of a task
	}
	return words, "", nil
}
