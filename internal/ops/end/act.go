package end

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// Act is what may be done about what was seen.
func (r *CleanupResult) Act() *ops.Act {
	env, plan := r.run.env, r.Plan()
	a := &ops.Act{
		Verb: "terminate", RunID: r.RunID, At: r.Survey.At, Targets: plannedItems(plan.Items), Guards: r.Guards, Objection: r.UnownedText(), Line: r.run.req.Line, Named: r.run.req.Production,
		Refused: cmp.Or(env.MayChange(), cleanup.Refusal(r.Guards, r.run.req.Line...)), Errors: r.Survey.Errs(), Verdict: r.Verdict,
	}
	a.Kept = make([]ops.PlannedEnd, 0, len(r.Survey.Kept))
	var others []ops.PlannedEnd // that the rule does not select: the last that a person looks for
	for _, j := range r.Survey.Kept {
		one := ops.PlannedEnd{Ref: j.Sandbox.Ref(), Reason: string(j.KeepReason) + ": " + j.Reason, Sandbox: j.Sandbox}
		switch {
		case j.Sandbox.State.Ended():
		case j.KeepReason == cleanup.KeepNotSelected:
			others = append(others, one)
		default:
			if !slices.Contains([]cleanup.KeepReason{cleanup.KeepAlive, cleanup.KeepNotBroken, cleanup.KeepPaused}, j.KeepReason) { // nothing is wrong with those
				one.KeptBecause = j.KeepReason.Label()
			}
			a.Kept = append(a.Kept, one)
		}
	}
	a.Kept = append(a.Kept, others...)
	a.Unowned, a.Own = r.unownedTotal()
	if flags, all := safety.OverrideFlags(r.Guards); all {
		a.Allow = strings.Join(flags, " ")
	}
	if a.Refused == nil && len(a.Targets) == 0 {
		a.Failed = r.Verdict
	}
	least, shares := safety.AskYes, ""
	if slices.ContainsFunc(r.Survey.Selected, func(j cleanup.Judgement) bool { return j.Sandbox.State == sandbox.StateRunning }) {
		least = safety.AskCount
	}
	if least == safety.AskCount || len(a.Targets) > safety.MaxUnasked {
		shares = r.countsByProvider()
	}
	if len(a.Targets) > 0 {
		for _, word := range safety.Answers(least, len(a.Targets), nil) {
			a.Asks = append(a.Asks, ops.AskEnd(word, shares))
		}
	}
	req := r.run.req
	req.RunID, req.Plan = r.RunID, &plan
	a.Execute = r.run.execute(req)
	return a
}

// execute returns the function that runs a cleanup, limited to the planned sandboxes.
func (r *cleanupRun) execute(planned CleanupRequest) func(context.Context, ops.Observer, ops.Allowed) ops.ActResult {
	carried := false
	return func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
		req := planned
		req.Yes, req.Production = true, allowed.Production
		if carried { // another part of it is a run of its own
			req.RunID = r.env.RunID()
		}
		carried = true
		if req.Plan != nil {
			plan := *req.Plan
			plan.Items = ops.Narrow(allowed, plan.Items, func(i runs.Item) sandbox.Ref { return i.Ref })
			if req.Plan = &plan; allowed.Counted {
				req.Counted = len(plan.Items)
			}
		}
		done, err := Cleanup(ctx, r.env, req, watch)
		if err != nil {
			return ops.NotBegun(planned.RunID, err)
		}
		return ops.ActResult{RunID: done.RunID, Endings: done.Endings, Err: done.Verdict, Refused: done.Refused, Took: done.Took, Detail: done}
	}
}

// PlanEmergency plans that profiles clean up by their own rules. Targets are those profiles.
func PlanEmergency(env *ops.Env, req CleanupRequest, targets []ops.PlannedEnd) *ops.Act {
	return &ops.Act{
		Verb: "run the emergency cleanup of", Targets: targets, Line: req.Line,
		Objection: "a provider's emergency cleanup terminates everything that is not critical, also sandboxes at work",
		Execute: func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
			req.Production, req.Emergency, req.Yes = allowed.Production, true, true
			req.Profiles = ops.Narrow(allowed, req.Profiles, func(name string) sandbox.Ref { return sandbox.Ref{ID: name} })
			done, err := Cleanup(ctx, env, req, watch)
			if err != nil {
				return ops.NotBegun("", err)
			}
			return ops.ActResult{RunID: done.RunID, Endings: done.Endings, Err: done.Verdict, Took: done.Took}
		},
	}
}

// Act is what may be done about what was compared.
func (r *ReconcileResult) Act() *ops.Act {
	env, req := r.run.env, r.run.req
	a := &ops.Act{
		Verb: "repair", RunID: r.RunID, At: r.Plan.At, Targets: plannedRows(r.Plan), Guards: r.Plan.Guards(r.Limits), Line: req.Line, Named: req.Production,
		Refused: cmp.Or(env.MayChange(), r.Plan.Refusal(r.Limits, req.Line...)), Errors: r.Plan.Errors, Verdict: r.Verdict,
	}
	for _, row := range r.Plan.Rows {
		if row.NeedsAction() && !row.Action.Acts() {
			a.Kept = append(a.Kept, ops.PlannedEnd{Ref: row.Ref, Reason: row.Reason, Sandbox: row.Box})
		}
	}
	if len(a.Targets) == 0 && len(r.Plan.Sides) == 0 {
		a.Failed = errors.Join(r.Plan.Errors...)
	}
	if len(a.Targets) > 0 {
		a.Objection = actingText(r.Plan)
		for _, word := range safety.Answers(safety.AskCount, len(a.Targets), nil) {
			q := ops.NewQuestion(word, "repair them")
			q.Objection, q.Refusal = a.Objection, notConfirmed(len(a.Targets), word)
			a.Asks = append(a.Asks, q)
		}
	}
	a.Execute = func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
		req := req
		req.Fix, req.Check, req.Yes, req.Rules.Observe, req.Confirmed = true, false, true, true, a.Refs()
		if allowed.Targets != nil {
			req.Confirmed = allowed.Targets
		}
		req.Production = allowed.Production
		done, err := Reconcile(ctx, env, req, watch)
		if err != nil {
			return ops.NotBegun("", err)
		}
		return ops.ActResult{RunID: done.RunID, Endings: done.Endings, Err: done.Verdict, Refused: done.Refused, Detail: done}
	}
	return a
}
