package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// actPlan is what an act is about to do, as it was read just now.
type actPlan struct {
	*ops.Act

	unowned *ops.Act // of what is not the operator's, which a person is asked for by itself; nil = nothing
	kept    []Target
	none    string // why there is nothing to do; "" = what is kept says it
	byName  bool   // a person names each profile, whatever the number
}

// targets are what it is about, as the record has them.
func (p *actPlan) targets() []Target { return recorded(p.Targets) }

// profiles are those that it is about.
func (p *actPlan) profiles() []string {
	if !p.byName {
		return p.Profiles()
	}
	var names []string
	for _, t := range p.Targets {
		names = append(names, t.Ref.ID)
	}
	return names
}

func recorded(planned []ops.PlannedEnd) []Target {
	var all []Target
	for _, one := range planned {
		all = append(all, Target{one.Ref.String(), one.Reason, one.KeptBecause, one.Cause})
	}
	return all
}

// act plans, asks, acts, and proves the effect.
func (r *runner) act(ctx context.Context, s runbook.Step, rec *Step, possible runbook.Word) error {
	r.named = nil
	shown, before := rec.Act, rec.Act
	if before != nil && before.IntentAt.IsZero() { // only its plan was made
		before = nil
	}
	if why := r.aboutAll(*s.Act); why != "" {
		rec.State, rec.Reason = Skipped, why
		return nil
	}
	if r.stale() {
		r.invalidate()
	}
	p, err := r.planAct(ctx, s, possible)
	if ctx.Err() != nil {
		return r.interrupted(ctx, rec)
	}
	if err != nil {
		rec.State, rec.Verdict, rec.Reason = Failed, sandbox.Unknown, oneLine(err)
		return nil
	}
	planned := recorded(p.all())
	rec.Act = &Act{
		Action: string(s.Act.Action), Line: actLine(r.fill(s.Act.Command()), planned), Gate: gateWord(s, p), Targets: planned, Kept: p.kept,
		Expect: string(s.Expect), Outcomes: earlier(before, planned),
	}
	r.addWaysOn(rec.Act, p)
	rec.Act.goOn(before)
	switch {
	case p.Refused != nil && !r.watch.Attended() && !r.run.DryRun: // other flags may allow it
		return r.wait(rec, p.Refused)
	case p.Refused != nil && (p.Allow == "" || !r.watch.Attended()):
		return r.refuse(rec, p.Refused)
	case len(planned) == 0 && len(rec.Act.Outcomes) > 0: // an interrupted one had done all
		return r.prove(ctx, s, rec)
	case len(planned) == 0:
		rec.State, rec.Reason = Skipped, nothingToDo(p)
		return nil
	case r.run.DryRun && p.Refused != nil:
		return r.refuse(rec, p.Refused)
	case r.run.DryRun:
		rec.State, rec.Reason = Pending, fmt.Sprintf("a dry run: it would %s %d", p.Verb, len(planned))
		r.dependsOn = rec.ID
		return nil
	}
	p.Objection = before.beganBefore(p.Objection)
	if more := added(shown, planned); len(more) > 0 && !r.watch.Attended() {
		return r.wait(rec, fault.New(
			fault.KindRefused, "the plan of the step %s has %d more than the one that was shown: %s", s.ID, len(more),
			strings.Join(more[:min(len(more), maxNamed)], ", "),
		).
			WithHint(
				"this plan is on record now: see it with `%s runbook status %s`; %s", r.env.Process.Name(), r.run.ID,
				r.goOnHint(fmt.Sprintf("--yes --max-delete %d", len(p.Targets))),
			))
	}
	if err := r.doGroups(ctx, s, rec, p); err != nil || rec.State != Running {
		return err
	}
	if len(rec.Act.Declined) > 0 {
		r.leftSome(rec)
		return nil
	}
	return r.prove(ctx, s, rec)
}

// declined is the reason of a step that a person did not want.
const declined = "the answer at its gate was no"

// addWaysOn adds the lines for what stays since nobody owns it.
func (r *runner) addWaysOn(a *Act, p *actPlan) {
	if p.Unowned == 0 {
		return
	}
	a.Unowned, a.Own, a.Once = p.Unowned, p.Own, a.Line+" --unowned"
	if len(r.req.Profiles) > 0 {
		a.Once += cron.ProviderFlags(r.req.Profiles)
	}
}

// Declined says that a person did not want a step.
func (s *Step) Declined() bool { return s.State == Skipped && s.Reason == declined }

// actLine is the line that a person would type for an act, with its targets where they are few.
func actLine(line string, targets []Target) string {
	for _, blank := range []string{"REF...", "TASK..."} {
		if len(targets) > 0 && len(targets) <= maxNamed {
			var refs []string
			for _, t := range targets {
				refs = append(refs, t.Ref)
			}
			line = strings.Replace(line, blank, strings.Join(refs, " "), 1)
		}
	}
	return line
}

// maxNamed is how many targets a line names.
const maxNamed = 5

func nothingToDo(p *actPlan) string {
	if p.none != "" {
		return fmt.Sprintf("there is nothing to %s: %s", p.Verb, p.none)
	}
	if len(p.kept) == 0 {
		return "there is nothing to " + p.Verb
	}
	counts := map[string]int{}
	for _, k := range p.kept {
		counts[k.KeptBecause]++
	}
	first := p.kept[0]
	if i := slices.IndexFunc(p.kept, func(k Target) bool { return k.KeptBecause != "" }); i >= 0 {
		first = p.kept[i]
	}
	delete(counts, "")
	if len(counts) == 0 {
		text := fmt.Sprintf("there is nothing to %s: %s stays: %s", p.Verb, first.Ref, first.Reason)
		if more := len(p.kept) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		return text
	}
	return fmt.Sprintf("%s stay (%s: %s)", sandbox.FormatCounts(counts), first.Ref, first.Reason)
}

// added are the targets that were not in the plan that is on record: what was allowed was that plan.
func added(shown *Act, targets []Target) []string {
	if shown == nil {
		return nil
	}
	var more []string
	for _, t := range targets {
		if !slices.ContainsFunc(shown.Targets, func(have Target) bool { return have.Ref == t.Ref }) {
			more = append(more, t.Ref)
		}
	}
	return more
}

// freshFor is how old what was read may be when an act is planned, and when it is done: a sandbox
// that was stuck may work again.
const freshFor = 2 * time.Second

// stale says that what was read is too old to act on it.
func (r *runner) stale() bool {
	for _, at := range r.facts.readAt {
		if r.env.Now().Sub(at) > freshFor {
			return true
		}
	}
	return false
}

// earlier are the outcomes of an interrupted act for what is no target any more.
func earlier(before *Act, targets []Target) []Outcome {
	if before == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(before.Outcomes), func(o Outcome) bool {
		return slices.ContainsFunc(targets, func(t Target) bool { return t.Ref == o.Ref })
	})
}

// refuse is a step that a guard keeps from acting.
func (r *runner) refuse(rec *Step, why error) error {
	rec.State, rec.Verdict, rec.Reason = Failed, sandbox.False, oneLine(why)
	rec.Act.Error, rec.Act.Kind = oneLine(why), fault.KindOf(why)
	return nil
}

// executeRecorded writes down what is about to happen, does it, and writes down what came of it.
func (r *runner) executeRecorded(ctx context.Context, s runbook.Step, rec *Step, p group) error {
	limited, stop := r.limited(ctx, s)
	defer stop()
	if r.env.Now().Sub(rec.BeganAt) > freshFor { // the answer took its time
		if err := r.narrow(limited, s, rec, p.actPlan); err != nil {
			rec.State, rec.Verdict, rec.Reason = Failed, sandbox.Unknown, oneLine(stepError(ctx, limited, err))
			return nil
		}
		if len(p.Targets) == 0 {
			return nil
		}
	}
	rec.Act.IntentAt, rec.Act.EndedAt, rec.Act.RunID = r.env.Now().UTC(), time.Time{}, ""
	if err := r.out.write(entryIntent, rec); err != nil {
		return err // nothing is done without its line
	}
	watch := &actObserver{Observer: r.watch, started: func(runID string) {
		rec.Act.RunID = runID
		_ = r.out.write(entryIntent, rec) // a failure is kept, and ends the run
	}}
	r.crashPoint("runbook intent")
	back := r.leave()
	allowed := ops.Allowed{Targets: []sandbox.Ref{}, Production: r.named, Counted: !p.byFlags, Asked: true}
	for _, t := range p.Targets {
		allowed.Targets = append(allowed.Targets, t.Ref)
	}
	done := p.Do(limited, watch, allowed)
	back()
	r.crashPoint("runbook acted")
	err := stepError(ctx, limited, done.Err)
	rec.Act.EndedAt, rec.Act.Outcomes = r.env.Now().UTC(), append(rec.Act.Outcomes, outcomes(done.Endings)...)
	if done.RunID != "" {
		rec.Act.RunID = done.RunID
	}
	if err != nil {
		rec.Act.Error, rec.Act.Kind = oneLine(err), fault.KindOf(err)
	}
	r.invalidate()
	if ctx.Err() != nil {
		return r.interrupted(ctx, rec)
	}
	return r.save(rec)
}

// crashPoint is where a test ends the process.
func (r *runner) crashPoint(point string) {
	if r.env.Process.At != nil {
		r.env.Process.At(point)
	}
}

// narrow reads again what is about to end, and leaves what does not belong to the plan any more.
func (r *runner) narrow(ctx context.Context, s runbook.Step, rec *Step, p *actPlan) error {
	if s.Act.Action != "terminate" { // the others judge again themselves
		return nil
	}
	r.invalidate()
	now, err := r.planAct(ctx, s, r.possibleCauseOf(rec))
	if err != nil {
		return err
	}
	before, stuck := len(p.Targets), r.stuckOnes() // also by another cause than the one that was found first
	p.Targets = slices.DeleteFunc(p.Targets, func(t ops.PlannedEnd) bool {
		return !slices.ContainsFunc(now.all(), func(still ops.PlannedEnd) bool { return still.Ref == t.Ref }) &&
			!slices.ContainsFunc(stuck, func(still suspect) bool { return still.Ref == t.Ref.String() })
	})
	rec.Act.Targets = slices.DeleteFunc(rec.Act.Targets, func(t Target) bool {
		return !slices.ContainsFunc(p.Targets, func(left ops.PlannedEnd) bool { return left.Ref.String() == t.Ref }) &&
			!slices.ContainsFunc(rec.Act.Outcomes, func(o Outcome) bool { return o.Ref == t.Ref })
	})
	if gone := before - len(p.Targets); gone > 0 {
		r.watch.Note(fmt.Sprintf("since the plan was shown %d of its %d have changed and stay", gone, before))
	}
	return nil
}

// possibleCauseOf is the cause whose branch a step belongs to; "" = none.
func (*runner) possibleCauseOf(rec *Step) runbook.Word {
	possible, _ := strings.CutPrefix(rec.Section, SectionCause+" ")
	if possible == rec.Section {
		return ""
	}
	return runbook.Word(possible)
}

// recover finds out what became of an act whose outcome is not on record: each of its targets is read
// again, and nothing is asked of it.
func (r *runner) recover(ctx context.Context, rec *Step) error {
	a := rec.Act
	a.EndedAt = r.env.Now().UTC()
	if a.Action == "stop" || len(a.Targets) == 0 || !strings.Contains(a.Targets[0].Ref, "/") {
		return r.out.write(entryStep, rec) // a stop may be repeated; an emergency cleanup has no targets
	}
	var words []string
	for _, t := range a.Targets {
		words = append(words, t.Ref)
	}
	back := r.leave()
	p, err := end.PlanTerminate(ctx, r.env, end.TerminateRequest{Words: words, Typed: words, Shown: true})
	back()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		a.EndedAt = time.Time{}
		return r.interrupted(ctx, rec)
	}
	alive := map[string]bool{}
	for _, one := range slices.Concat(p.Targets, p.Kept) {
		alive[one.Ref.String()] = one.Sandbox.State != "" && !one.Sandbox.State.Ended()
	}
	unread := slices.ContainsFunc(p.Errors, func(err error) bool {
		kind := fault.KindOf(err)
		return err != nil && kind != fault.KindNotFound && kind != fault.KindGone
	})
	known := a.Outcomes
	for _, t := range a.Targets {
		if slices.ContainsFunc(known, func(o Outcome) bool { return o.Ref == t.Ref }) { // of an earlier group
			continue
		}
		living, seen := alive[t.Ref]
		o := Outcome{Ref: t.Ref, Outcome: sandbox.OutcomeAlreadyGone, Reason: "it was gone when the run went on"}
		switch {
		case living:
			o.Outcome, o.Reason = sandbox.OutcomeNotAttempted, "it was still there when the run went on"
		case !seen && unread:
			o.Outcome, o.Reason = sandbox.OutcomeFailed, "it could not be read when the run went on: "+lostText(p.Errors)
		}
		a.Outcomes = append(a.Outcomes, o)
	}
	return r.out.write(entryStep, rec)
}

// actErrors are the errors of the acts of a run, each with its kind.
func (r *Run) actErrors() error {
	var errs []error
	for _, s := range r.Steps {
		switch {
		case s.Act == nil:
		case s.Act.Kind != fault.KindNone:
			errs = append(errs, fault.New(s.Act.Kind, "%s: %s", s.ID, s.Act.Error))
		case s.State == Failed && s.Act.Effect == sandbox.False:
			errs = append(errs, fault.New(fault.KindFound, "%s: %s", s.ID, s.Reason))
		case s.State == Failed && s.Act.Expect != "":
			errs = append(errs, fault.New(fault.KindUnverified, "%s: %s", s.ID, s.Reason))
		}
	}
	return errors.Join(errs...)
}
