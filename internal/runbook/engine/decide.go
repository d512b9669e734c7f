package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// decided is the entry about which branches are done, and whom to call by the diagnosis.
type decided struct {
	Causes []Cause  `json:"causes"`
	Calls  []Call   `json:"calls"`
	Stuck  []Target `json:"stuck,omitempty"`
}

// decide chooses the branches of the causes that the diagnosis names. A hint selects none, and
// neither does what is not known.
func (r *runner) decide(ctx context.Context) error {
	if r.decided {
		return nil
	}
	spec := r.book.Spec
	why := ""
	if len(spec.Causes) > 0 {
		if err := r.needDiagnosis(ctx); err != nil {
			why = "there is no diagnosis: " + oneLine(err)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.run.Causes, r.run.Stuck = r.namedCauses(), r.found()
	for _, c := range spec.Causes {
		if reason := r.notSelected(c, why); reason != "" {
			if err := r.leaveBranch(c, reason); err != nil {
				return err
			}
		}
	}
	r.run.Calls = r.callsByCondition(ctx)
	r.decided = true
	r.reportRun()
	return r.out.write(entryCauses, decided{r.run.Causes, r.run.Calls, r.run.Stuck})
}

// found are the stuck sandboxes of the diagnosis, with their causes.
func (r *runner) found() (all []Target) {
	if r.facts.diagnosis == nil {
		return nil
	}
	for _, g := range r.facts.diagnosis.Stuck {
		for _, ref := range g.Refs {
			all = append(all, Target{Ref: ref.String(), Reason: g.Cause.Label()})
		}
	}
	return all
}

// needDiagnosis reads a diagnosis, and that of what was named.
func (r *runner) needDiagnosis(ctx context.Context) error {
	if r.run.Word != "" && r.facts.inspected == nil {
		for _, g := range r.readAll(ctx, []source{fromInspect}) {
			if g.err == nil {
				return nil
			}
		}
	}
	if r.facts.diagnosis != nil || r.facts.inspected != nil {
		return nil
	}
	return r.readAll(ctx, []source{fromDiagnose})[0].err
}

// notSelected says why the branch of a cause is not done; "" = it is.
func (r *runner) notSelected(branch runbook.Cause, why string) string {
	if r.run.Procedure != "" {
		return "the procedure " + r.run.Procedure + " was chosen instead"
	}
	i := slices.IndexFunc(r.run.Causes, func(c Cause) bool { return c.ID == string(branch.PossibleCause) })
	switch {
	case why != "":
		return why
	case i < 0:
		return "the diagnosis does not name it"
	case !r.run.Causes[i].Selected:
		return strings.TrimSuffix("the diagnosis is not sure of it ("+string(r.run.Causes[i].Confidence)+"): "+r.run.Causes[i].WhyNot, ": ")
	}
	return ""
}

func (r *runner) leaveBranch(branch runbook.Cause, reason string) error {
	for _, s := range branch.Steps {
		rec := r.run.Step(string(s.ID))
		rec.State, rec.Reason = NotSelected, reason
		if err := r.save(rec); err != nil {
			return err
		}
	}
	return nil
}

// namedCauses are the causes of what was diagnosed, those of the named sandbox first.
func (r *runner) namedCauses() []Cause {
	var all []Cause
	for _, d := range []*look.DiagnoseResult{r.facts.inspected, r.facts.diagnosis} {
		if d == nil {
			continue
		}
		for _, f := range d.Causes {
			if !slices.ContainsFunc(all, func(c Cause) bool { return c.ID == possibleCauseOf(f) }) {
				all = append(all, r.cause(f))
			}
		}
	}
	return all
}

func (r *runner) cause(f triage.Finding) Cause {
	c := Cause{
		ID: possibleCauseOf(f), Title: f.Title, Confidence: f.Confidence, Score: f.Score, Coverage: f.Coverage, Evidence: slices.Clone(f.Evidence), WhyNot: f.WhyNot, Refs: []string{},
		Selected: f.Confidence == sandbox.Certain || f.Confidence == sandbox.Probable,
	}
	for i := range c.Evidence {
		c.Evidence[i].Value = r.watch.Redact(c.Evidence[i].Value)
	}
	for _, t := range r.refsOf(runbook.Word(c.ID)) {
		c.Refs = append(c.Refs, t.Ref)
	}
	for _, branch := range r.book.Spec.Causes {
		if string(branch.PossibleCause) == c.ID {
			c.Branch, c.See = true, r.book.SeeAlso(branch)
		}
	}
	if see := runbook.ForCause(c.ID); !c.Branch && see != string(r.book.Metadata.ID) {
		c.See = see
	}
	c.Selected = c.Selected && c.Branch && r.run.Procedure == ""
	return c
}

// refsOf are the sandboxes with a cause, as the diagnosis has grouped them: stuck ones, then those that
// are only suspected.
func (r *runner) refsOf(possible runbook.Word) (all []suspect) {
	if d := r.facts.inspected; d != nil && d.Inspected != nil && slices.ContainsFunc(d.Causes, isNamed(possible)) && !d.Inspected.Seen.Sandbox.State.Ended() {
		all = append(all, inspectedSuspect(d.Inspected))
	}
	d := r.facts.diagnosis
	if d == nil {
		return all
	}
	for _, f := range d.Causes {
		if !isNamed(possible)(f) {
			continue
		}
		all = addGroups(all, d.Stuck, f.Cause, true)
		all = addGroups(all, d.Suspected, f.Cause, false)
	}
	return all
}

// suspect is a sandbox with a cause.
type suspect struct {
	Ref    string
	stuck  bool
	cause  string // in a word or two
	reason string // one sentence
}

func inspectedSuspect(r *look.InspectResult) suspect {
	v := r.Verdict
	return suspect{r.Seen.Sandbox.Ref().String(), v.Stuck == sandbox.True, v.Cause.Label(), v.Reason}
}

func addGroups(all []suspect, groups []ops.CauseGroup, cause sandbox.Cause, stuck bool) []suspect {
	for _, g := range groups {
		if g.Cause != cause {
			continue
		}
		for i, ref := range g.Refs {
			if !slices.ContainsFunc(all, func(have suspect) bool { return have.Ref == ref.String() }) {
				all = append(all, suspect{ref.String(), stuck, g.Cause.Label(), g.Reasons[i]})
			}
		}
	}
	return all
}

func isNamed(possible runbook.Word) func(triage.Finding) bool {
	return func(f triage.Finding) bool { return possibleCauseOf(f) == string(possible) }
}

// verify does the steps of verification, again and again until all hold where that was asked for.
func (r *runner) verify(ctx context.Context, s section) error {
	limit := time.Now().Add(r.req.UntilOK)
	for {
		if err := r.doSteps(ctx, s, s.steps, ofEvery); err != nil {
			return err
		}
		left := time.Until(limit)
		if left <= 0 || r.dependsOn != "" || !r.reopenMissed(s) {
			return nil
		}
		r.watch.Note("not everything is as it should be; next round in " + sandbox.FormatDuration(min(r.req.Every, left)))
		back := r.leave()
		err := r.env.PauseRound(ctx, time.After(min(r.req.Every, left)))
		back()
		if err != nil {
			return err
		}
		r.invalidate()
	}
}

// reopenMissed makes the checks pending that do not hold; false = all do.
func (r *runner) reopenMissed(s section) bool {
	again := false
	for _, step := range s.steps {
		rec := r.run.Step(string(step.ID))
		if rec.Verdict != "" && rec.Verdict != sandbox.True && (step.Check != "" || step.WaitUntil != "") {
			rec.State, again = Pending, true
		}
	}
	return again
}

// callsByCondition are the calls that the diagnosis itself demands, before anything is done about it.
func (r *runner) callsByCondition(ctx context.Context) []Call {
	var calls []Call
	for _, e := range r.book.Spec.Escalation {
		if e.When == "" || strings.Contains(string(e.When), "verify.") {
			continue
		}
		call := r.call(e)
		call.Verdict, call.Evidence = r.evaluate(ctx, e.When, ofAny)
		calls = append(calls, call)
	}
	return calls
}

// decideCalls says whom to call now: by the alerts as they are after the run, and by conditions that
// hold now or held when the causes were named.
func (r *runner) decideCalls(ctx context.Context) error {
	spec := r.book.Spec
	if r.dependsOn != "" || len(spec.Escalation) == 0 {
		return nil
	}
	before := r.run.Calls
	if err := r.need(ctx, []string{"verify.active_normal"}); err != nil && ctx.Err() == nil {
		r.watch.Warn("whom to call is not known: " + oneLine(err))
	}
	r.run.Calls = nil
	for _, e := range spec.Escalation {
		call := r.call(e)
		if e.Alert != "" {
			call.Verdict, call.Evidence = r.alertHolds(e.Alert)
		} else {
			call.Verdict, call.Evidence = r.evaluate(ctx, e.When, ofAny)
		}
		held := slices.IndexFunc(before, func(c Call) bool { return c.To == call.To && c.When == call.When && c.Verdict == sandbox.True })
		if held >= 0 && call.Verdict != sandbox.True {
			call.Verdict, call.Evidence = sandbox.True, before[held].Evidence
		}
		if call.Verdict == sandbox.True && e.For > 0 {
			call.Verdict = sandbox.Unknown // for how long, one run cannot know
			call.Evidence = append(call.Evidence, "call when it has held for "+sandbox.FormatDuration(e.For))
		}
		r.run.Calls = append(r.run.Calls, call)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// alertHolds says whether an alert fires anywhere: it has held for as long as it must.
func (r *runner) alertHolds(id runbook.Word) (sandbox.Verdict, []string) {
	if r.facts.verified == nil {
		return sandbox.Unknown, nil
	}
	var evidence []string
	verdict := sandbox.False
	for _, a := range r.facts.verified.Alerts {
		if a.Rule.ID != string(id) {
			continue
		}
		if a.State.Phase == alert.Firing {
			verdict = sandbox.True
		}
		evidence = append(evidence, fmt.Sprintf("%s: %s; %s", a.Provider, strings.Join(a.Evidence, "; "), a.State.Describe(a.At, a.HoldFor)))
	}
	return verdict, evidence
}

func (r *runner) call(e runbook.Escalation) Call {
	call := Call{To: string(e.To), Alert: string(e.Alert), When: string(e.When), Text: r.fill(e.Text)}
	if rule, known := check.Alert(string(e.Alert)); known {
		call.When = rule.When()
	}
	for _, c := range r.book.Spec.Contacts {
		if c.ID == e.To {
			call.Name, call.Channel = c.Name, c.Channel
		}
	}
	return call
}
