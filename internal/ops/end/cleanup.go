package end

import (
	"context"
	"fmt"
	"slices"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// PlanCleanup looks at everything and says what Cleanup would do; it does nothing.
func PlanCleanup(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*CleanupResult, error) {
	r, err := newCleanupRun(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	if err := r.surveyFleet(ctx); err != nil {
		return nil, err
	}
	r.rehearseEnds(ctx)
	return r.resultWith(r.survey.Verdict(nil)), nil
}

// Cleanup ends what its rule chooses, within the guards, under the lock of bulk runs, with a
// journal, and notifies watchdogs and people of the result. Yes has to allow it: a skin
// that asks a person first carries out the Act of a plan. Items are of types RunStarted and
// sandbox.Ending. With an error nothing was begun; the result is not nil where the run has figures
// all the same.
func Cleanup(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*CleanupResult, error) {
	if err := env.MayChange(); err != nil {
		return nil, err
	}
	r, err := newCleanupRun(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	result, err := r.runRequested(ctx)
	if err != nil {
		return r.resultWith(err), err
	}
	return result, nil
}

func (r *cleanupRun) runRequested(ctx context.Context) (*CleanupResult, error) {
	switch {
	case r.req.Emergency, r.req.ProviderSide:
		return r.runProviderCleanups(ctx)
	case !r.req.Yes:
		return nil, fault.New(fault.KindRefused, "a cleanup needs confirmation").WithHint("see its plan, then repeat with --yes")
	case r.req.Resume != "":
		return r.resumeRun(ctx)
	case r.req.Plan != nil:
		if err := r.checkPlan(); err != nil {
			return nil, err
		}
		return r.endWithinPlan(ctx, *r.req.Plan)
	}
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		if err := r.surveyFleet(ctx); err != nil {
			return nil, err
		}
		return r.runJournaled(ctx, r.survey.Targets())
	})
}

// endWithinPlan judges again and ends at most what an allowed plan names: a sandbox of the plan may
// have started to work since.
func (r *cleanupRun) endWithinPlan(ctx context.Context, plan cleanup.Plan) (*CleanupResult, error) {
	r.rule = plan.Rule
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		if err := r.listAndJudge(ctx); err != nil {
			return nil, err
		}
		targets, found := r.survey.TargetsWithin(plan), len(r.survey.Selected)
		r.survey.Narrow(targets)
		left := len(r.survey.Selected)
		r.narrowed = left < found
		if left < len(targets) {
			r.watch.Note(fmt.Sprintf("since the plan was made %d of its %d have changed and stay", len(targets)-left, len(targets)))
		}
		return r.runJournaled(ctx, targets)
	})
}

// surveyFleet looks at everything, and says how much the rule selects.
func (r *cleanupRun) surveyFleet(ctx context.Context) error {
	if err := r.listAndJudge(ctx); err != nil {
		return err
	}
	if r.fleet != nil {
		r.watch.Note(fmt.Sprintf("found %d of %d sandboxes to clean up", len(r.survey.Selected), len(r.survey.Selected)+len(r.survey.Kept)))
	}
	return nil
}

// rehearseEnds asks the providers without ending anything, and keeps what they would refuse to end.
func (r *cleanupRun) rehearseEnds(ctx context.Context) {
	if len(r.survey.Selected) == 0 || r.env.MayChange() != nil {
		return
	}
	targets := make([]sandbox.Sandbox, len(r.survey.Selected))
	for i, j := range r.survey.Selected {
		targets[i] = j.Sandbox
	}
	refused := r.fleet.Rehearse(ctx, targets, fleet.EndOptions{Delete: r.rule.Delete, Grace: r.req.Grace})
	if r.survey.KeepRefusedByProvider(refused); len(refused) > 0 {
		r.watch.Note(fmt.Sprintf("the provider would refuse to end %d of them", len(refused)))
	}
}

// runJournaled begins the journal, holds the run against the guards and ends the targets.
func (r *cleanupRun) runJournaled(ctx context.Context, targets []cleanup.Target) (*CleanupResult, error) {
	r.recordSeenCounts(ctx)
	guards := r.survey.Guards(r.world)
	plan := r.survey.Plan(r.id)
	plan.Items = plan.Items[:0]
	for _, t := range targets {
		plan.Items = append(plan.Items, t.Item)
	}
	layer, coverageGap := r.layerAndGap()
	kept := map[string]int{}
	for why, n := range r.survey.KeepReasons() {
		kept[string(why)] = n
	}
	w, err := r.env.Runs().Begin(ctx, runs.JournalRequired, r.id, runs.Begin{
		Actor: r.env.Actor(), Verb: runs.VerbCleanup, Layer: layer, CoverageGap: coverageGap, Plan: plan.Recorded(), Guards: safety.Record(guards), Profiles: r.survey.Records(r.watch.Redact), Kept: kept,
	}, r.watch)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r.recorded = true
	if refused := cleanup.Refusal(guards, r.req.Line...); refused != nil {
		if err := w.Finish(ctx, runs.NewConclusion(nil, refused, nil)); err != nil {
			r.watch.Warn(err.Error())
		}
		r.watch.Item(ops.RunStarted{RunID: r.id})
		result := r.resultWith(refused)
		result.Refused = refused
		return result, nil
	}
	return r.endTargets(ctx, w, targets)
}

// Find looks a word up among everything that was judged.
func (r *CleanupResult) Find(word string) (cleanup.Judgement, error) {
	ref, err := sandbox.ParseRef(word)
	if err != nil {
		return cleanup.Judgement{}, fault.Usage("--explain: %w", err)
	}
	judged := slices.Concat(r.Survey.Selected, r.Survey.Kept)
	all := make([]sandbox.Sandbox, len(judged))
	for i, j := range judged {
		all[i] = j.Sandbox
	}
	found, _ := fleet.MatchRef(all, ref)
	switch {
	case len(found) == 1:
		return judged[slices.IndexFunc(all, func(s sandbox.Sandbox) bool { return s.Ref() == found[0].Ref() })], nil
	case len(found) > 1:
		return cleanup.Judgement{}, fault.Usage("--explain: %q means %d sandboxes", word, len(found)).WithHint("write it as profile/id")
	case len(r.Survey.Errs()) > 0:
		return cleanup.Judgement{}, r.Survey.Verdict(nil)
	}
	return cleanup.Judgement{}, fault.New(fault.KindNotFound, "no sandbox matches %q", word).WithHint("`%s ls --all` lists all of them", r.run.env.Process.Name())
}
