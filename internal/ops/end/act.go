package end

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/safety"
)

// TerminationAct plans the end of sandboxes that are named.
func TerminationAct(ctx context.Context, env *ops.Env, req TerminateRequest, watch ops.Observer) (*ops.Act, error) {
	plan, err := PlanTerminate(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	a := &ops.Act{Verb: "terminate", Targets: plan.Selected, Kept: plan.Kept, Refused: env.MayChange(), Line: req.Line}
	if kind := fault.KindOf(plan.Verdict); len(plan.Selected)+len(plan.Kept) == 0 && kind != fault.KindNone && kind != fault.KindNotFound && kind != fault.KindGone {
		a.Failed = plan.Verdict
	}
	a.Carry = func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
		req := req
		req.Yes, req.Production, req.Planned, req.Words = true, allowed.Production, plan.Selected, nil
		for _, t := range plan.Selected {
			if allowed.Targets == nil || slices.Contains(allowed.Targets, t.Ref) {
				req.Words = append(req.Words, t.Ref.String())
			}
		}
		if len(req.Typed) > 0 {
			req.Typed = req.Words
		}
		done, err := Terminate(ctx, env, req, watch)
		if err != nil {
			return ops.ActResult{Err: err}
		}
		return ops.ActResult{RunID: done.RunID, Endings: done.Endings, Err: errors.Join(done.Refused, done.Verdict)}
	}
	return a, nil
}

// CleanupAct plans a cleanup.
func CleanupAct(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*ops.Act, error) {
	seen, err := PlanCleanup(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	plan := seen.Plan()
	a := &ops.Act{Verb: "terminate", Targets: plannedItems(plan.Items), Refused: cmp.Or(env.MayChange(), cleanup.Refusal(seen.Guards, req.Line...)), Objection: seen.UnownedText(), Line: req.Line}
	var others []ops.PlannedEnd // that the rule does not select: the last that a person looks for
	for _, j := range seen.Survey.Kept {
		one := ops.PlannedEnd{Ref: j.Sandbox.Ref(), Reason: string(j.KeepReason) + ": " + j.Reason, Sandbox: j.Sandbox}
		switch {
		case j.Sandbox.State.Ended():
		case j.KeepReason == cleanup.KeepNotSelected:
			others = append(others, one)
		default:
			if !slices.Contains([]cleanup.KeepReason{cleanup.KeepAlive, cleanup.KeepAnswers, cleanup.KeepPaused}, j.KeepReason) { // nothing is wrong with those
				one.Ground = j.KeepReason.Label()
			}
			a.Kept = append(a.Kept, one)
		}
	}
	a.Kept = append(a.Kept, others...)
	a.Unowned, a.Own = seen.unowned()
	if flags, all := safety.OverrideFlags(seen.Guards); all {
		a.Allow = strings.Join(flags, " ")
	}
	if a.Refused == nil && len(a.Targets) == 0 {
		a.Failed = seen.Verdict
	}
	carried := false
	a.Carry = func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
		req := seen.Confirmed()
		req.Production = allowed.Production
		if carried { // another part of it is a run of its own
			req.RunID = env.RunID()
		}
		carried = true
		if allowed.Targets != nil {
			req.Plan.Items = slices.DeleteFunc(req.Plan.Items, func(i runs.Item) bool { return !slices.Contains(allowed.Targets, i.Ref) })
		}
		if allowed.Counted {
			req.Counted = len(req.Plan.Items)
		}
		done, err := Cleanup(ctx, env, req, watch)
		if err != nil {
			return ops.ActResult{RunID: seen.RunID, Err: err}
		}
		return ops.ActResult{RunID: done.RunID, Endings: done.Endings, Err: done.Verdict}
	}
	return a, nil
}

// EmergencyAct plans that profiles clean up by their own rules.
func EmergencyAct(env *ops.Env, req CleanupRequest, targets []ops.PlannedEnd) *ops.Act {
	return &ops.Act{
		Verb: "run the emergency cleanup of", Targets: targets,
		Objection: "a provider's emergency cleanup terminates everything that is not critical, also sandboxes at work",
		Carry: func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
			req.Production, req.Emergency, req.Yes = allowed.Production, true, true
			done, err := Cleanup(ctx, env, req, watch)
			if err != nil {
				return ops.ActResult{Err: err}
			}
			return ops.ActResult{RunID: done.RunID, Endings: done.Endings, Err: done.Verdict}
		},
	}
}

// ReconciliationAct plans what a reconciliation would act on.
func ReconciliationAct(ctx context.Context, env *ops.Env, req ReconcileRequest, watch ops.Observer) (*ops.Act, error) {
	seen, err := Reconcile(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	a := &ops.Act{Verb: "repair", Targets: plannedRows(seen.Plan), Refused: cmp.Or(env.MayChange(), seen.Plan.Refusal(seen.Limits, req.Line...)), Line: req.Line}
	for _, row := range seen.Plan.Rows {
		if row.Found() && !row.Action.Acts() {
			a.Kept = append(a.Kept, ops.PlannedEnd{Ref: row.Ref, Reason: row.Reason, Sandbox: row.Box})
		}
	}
	if len(a.Targets) == 0 && len(seen.Plan.Sides) == 0 {
		a.Failed = errors.Join(seen.Plan.Errors...)
	}
	if len(a.Targets) > 0 {
		a.Objection = actingText(seen.Plan)
	}
	a.Carry = func(ctx context.Context, watch ops.Observer, allowed ops.Allowed) ops.ActResult {
		req := req
		req.Fix, req.Rules.Observe, req.Production = true, true, allowed.Production
		done, err := Reconcile(ctx, env, req, watch)
		if err != nil {
			return ops.ActResult{Err: err}
		}
		return ops.ActResult{RunID: done.RunID, Endings: done.Endings, Err: done.Verdict}
	}
	return a, nil
}
