package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Act is an operation that was planned and has not begun. It is frozen: Do acts on at most its targets,
// and the operation reads or judges each of them again just before. Command line, runbooks and dashboard
// act through it.
type Act struct {
	Verb      string       // what is done to a target: "terminate"
	Targets   []PlannedEnd // what it would act on; a task or a profile is a reference without a provider
	Kept      []PlannedEnd // what stays, and why
	Objection string       // what a person should know first; "" = nothing
	Refused   error        // why it is refused, and no answer allows it; nil = it is not
	Failed    error        // why nothing could be read; nil = something was
	Line      []string     // as a person types it, quoted for a shell; nil = the request had none

	do func(ctx context.Context, watch Observer, allowed Allowed) ActResult
}

// Allowed is what a person or a flag has allowed of an act.
type Allowed struct {
	Targets    []sandbox.Ref // at most these; nil = all
	Production []string      // production profiles that were named
}

// ActResult is what an operation has done.
type ActResult struct {
	RunID   string
	Endings []sandbox.Ending // of its targets, of tasks too
	Err     error            // why it began nothing, else of what went wrong
}

// Do carries the act out. Items are those of the operation.
func (a *Act) Do(ctx context.Context, watch Observer, allowed Allowed) ActResult {
	o := plannedObserver{watch, a.Targets}
	if allowed.Targets != nil {
		o.planned = slices.DeleteFunc(slices.Clone(a.Targets), func(t PlannedEnd) bool { return !slices.Contains(allowed.Targets, t.Ref) })
	}
	return a.do(ctx, o, allowed)
}

// Profiles are those of the targets, in the order of the targets.
func (a *Act) Profiles() []string {
	var names []string
	for _, t := range a.Targets {
		if name := t.Ref.Provider; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Unnamed are the production profiles of the act that a person has to name first.
func (a *Act) Unnamed(env *Env, named []string) []string {
	c, err := env.Config()
	if err != nil {
		return a.Profiles()
	}
	return slices.DeleteFunc(a.Profiles(), func(name string) bool {
		return slices.Contains(named, name) || !slices.Contains(c.Production, name)
	})
}

// Questions are what a person answers first: the word, if any, with the plan, and the name of each
// profile that has to be named.
func (a *Act) Questions(word string, unnamed []string) []Question {
	what := "it" // the plan names it; what an API calls it does not belong into a prompt
	if len(a.Targets) != 1 {
		what = fmt.Sprintf("these %d", len(a.Targets))
	}
	words := slices.Clone(unnamed)
	if word != "" {
		words = append([]string{word}, words...)
	}
	all := make([]Question, len(words))
	for i, w := range words {
		all[i] = Question{Word: w, Prompt: fmt.Sprintf("type %s to %s %s, anything else to leave it: ", w, a.Verb, what)}
	}
	if len(all) > 0 {
		all[0].Targets, all[0].Objection = a.sandboxes(), a.Objection
	}
	return all
}

// sandboxes are the targets of which a table can show more than a word.
func (a *Act) sandboxes() []PlannedEnd {
	if len(a.Profiles()) == 0 {
		return nil
	}
	return a.Targets
}

// CountQuestions are Questions by the number of the targets.
func (a *Act) CountQuestions(env *Env) []Question {
	return a.Questions(strconv.Itoa(len(a.Targets)), a.Unnamed(env, nil))
}

// TerminationAct plans the end of sandboxes that are named.
func TerminationAct(ctx context.Context, env *Env, req TerminateRequest, watch Observer) (*Act, error) {
	plan, err := PlanTerminate(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	a := &Act{Verb: "terminate", Targets: plan.Selected, Kept: plan.Kept, Refused: env.mayChange(), Line: req.Line}
	if kind := fault.KindOf(plan.Verdict); len(plan.Selected)+len(plan.Kept) == 0 && kind != fault.KindNone && kind != fault.KindNotFound && kind != fault.KindGone {
		a.Failed = plan.Verdict
	}
	a.do = func(ctx context.Context, watch Observer, allowed Allowed) ActResult {
		req := req
		req.Yes, req.Production, req.Planned, req.Words = true, allowed.Production, plan.Selected, nil
		for _, t := range a.Targets {
			if allowed.Targets == nil || slices.Contains(allowed.Targets, t.Ref) {
				req.Words = append(req.Words, t.Ref.String())
			}
		}
		if len(req.Typed) > 0 {
			req.Typed = req.Words
		}
		done, err := Terminate(ctx, env, req, watch)
		if err != nil {
			return ActResult{Err: err}
		}
		return ActResult{done.RunID, done.Endings, errors.Join(done.Refused, done.Verdict)}
	}
	return a, nil
}

// CleanupAct plans a cleanup.
func CleanupAct(ctx context.Context, env *Env, req CleanupRequest, watch Observer) (*Act, error) {
	seen, err := PlanCleanup(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	plan := seen.Plan()
	a := &Act{Verb: "terminate", Targets: plannedItems(plan.Items), Refused: cmp.Or(env.mayChange(), cleanup.Refusal(seen.Guards, req.Line...)), Objection: seen.UnownedText(), Line: req.Line}
	var others []PlannedEnd // that the rule does not select: the last that a person looks for
	for _, j := range seen.Survey.Kept {
		one := PlannedEnd{j.Sandbox.Ref(), string(j.KeepReason) + ": " + j.Reason, j.Sandbox}
		switch {
		case j.Sandbox.State.Ended():
		case j.KeepReason == cleanup.KeepNotSelected:
			others = append(others, one)
		default:
			a.Kept = append(a.Kept, one)
		}
	}
	a.Kept = append(a.Kept, others...)
	if a.Refused == nil && len(a.Targets) == 0 {
		a.Failed = seen.Verdict
	}
	a.do = func(ctx context.Context, watch Observer, allowed Allowed) ActResult {
		req := seen.Confirmed()
		req.Production = allowed.Production
		done, err := Cleanup(ctx, env, req, watch)
		if err != nil {
			return ActResult{RunID: seen.RunID, Err: err}
		}
		return ActResult{done.RunID, done.Endings, done.Verdict}
	}
	return a, nil
}

// EmergencyAct plans that profiles clean up by their own rules.
func EmergencyAct(env *Env, req CleanupRequest, targets []PlannedEnd) *Act {
	return &Act{
		Verb: "run the emergency cleanup of", Targets: targets,
		Objection: "a provider's emergency cleanup terminates everything that is not critical, also sandboxes at work",
		do: func(ctx context.Context, watch Observer, allowed Allowed) ActResult {
			req.Production, req.Emergency, req.Yes = allowed.Production, true, true
			done, err := Cleanup(ctx, env, req, watch)
			if err != nil {
				return ActResult{Err: err}
			}
			return ActResult{done.RunID, done.Endings, done.Verdict}
		},
	}
}

// ReconciliationAct plans what a reconciliation would act on.
func ReconciliationAct(ctx context.Context, env *Env, req ReconcileRequest, watch Observer) (*Act, error) {
	seen, err := Reconcile(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	a := &Act{Verb: "repair", Targets: plannedRows(seen.Plan), Refused: cmp.Or(env.mayChange(), seen.Plan.Refusal(seen.Limits, req.Line...)), Line: req.Line}
	for _, row := range seen.Plan.Rows {
		if row.Found() && !row.Action.Acts() {
			a.Kept = append(a.Kept, PlannedEnd{row.Ref, row.Reason, row.Box})
		}
	}
	if len(a.Targets) == 0 && len(seen.Plan.Sides) == 0 {
		a.Failed = errors.Join(seen.Plan.Errors...)
	}
	if len(a.Targets) > 0 {
		a.Objection = actingText(seen.Plan)
	}
	a.do = func(ctx context.Context, watch Observer, allowed Allowed) ActResult {
		req := req
		req.Fix, req.Rules.Observe, req.Production = true, true, allowed.Production
		done, err := Reconcile(ctx, env, req, watch)
		if err != nil {
			return ActResult{Err: err}
		}
		return ActResult{done.RunID, done.Endings, done.Verdict}
	}
	return a, nil
}

// StopAct plans the stop of tasks.
func StopAct(env *Env, tasks []string) *Act {
	a := &Act{Verb: "stop", Refused: env.mayChange(), Objection: fmt.Sprintf("%d tasks would be stopped: they publish nothing from then on", len(tasks))}
	for _, id := range tasks {
		a.Targets = append(a.Targets, PlannedEnd{Ref: sandbox.Ref{ID: id}, Reason: "its task"})
	}
	a.do = func(ctx context.Context, watch Observer, _ Allowed) ActResult {
		stopped, err := Stop(ctx, env, StopRequest{Tasks: tasks}, watch)
		result := ActResult{Err: err}
		for _, s := range stopped {
			e := sandbox.Ending{Ref: sandbox.Ref{ID: s.Word}, Outcome: sandbox.OutcomeVerified, Err: s.Err}
			switch {
			case s.Err != nil && s.Forbidden:
				e.Outcome, e.Reason = sandbox.OutcomeAccepted, s.Err.Error()
			case s.Err != nil:
				e.Outcome, e.Reason = sandbox.OutcomeFailed, s.Err.Error()
			case s.WasOver:
				e.Outcome, e.Reason = sandbox.OutcomeAlreadyGone, "it had ended before"
			}
			result.Endings, result.Err = append(result.Endings, e), errors.Join(result.Err, s.Err)
		}
		return result
	}
	return a
}

// plannedObserver answers the question of an operation that plans again just before it acts: yes for at
// most what was planned.
type plannedObserver struct {
	Observer

	planned []PlannedEnd
}

// Attended is true: the person has answered before.
func (plannedObserver) Attended() bool { return true }

// Confirm allows what was planned.
func (o plannedObserver) Confirm(_ context.Context, q Question) (bool, error) {
	for _, t := range q.Targets {
		if !slices.ContainsFunc(o.planned, func(p PlannedEnd) bool { return p.Ref == t.Ref }) {
			return false, fault.New(fault.KindRefused, "the plan has grown since it was confirmed: %s is new; nothing was done", t.Ref).WithHint("plan it again")
		}
	}
	return true, nil
}

// plannedItems are the items of a cleanup's plan, as questions show them.
func plannedItems(items []cleanup.Item) []PlannedEnd {
	all := make([]PlannedEnd, len(items))
	for i, item := range items {
		s := sandbox.Sandbox{Provider: item.Ref.Provider, ID: item.Ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt}
		all[i] = PlannedEnd{item.Ref, item.Reason, s}
	}
	return all
}
