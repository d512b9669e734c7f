package engine

import (
	"context"
	"fmt"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// choice are the sandboxes that an act is about, with the reason of each; kept are those that only a
// person may add.
type choice struct {
	refs []string
	why  map[string]string
	// cause is what is wrong with each, in a word or two.
	cause map[string]string
	kept  []Target
	none  string // why it is about nothing; "" = the act has a reason of its own
}

// choose finds what an act is about.
func (r *runner) choose(ctx context.Context, a runbook.Act, possible runbook.Word) (choice, error) {
	c := choice{why: map[string]string{}, cause: map[string]string{}}
	if a.Targets == "named" {
		if r.run.Word == "" {
			return c, fault.New(fault.KindRefused, "it is about a sandbox or task that you name").WithHint("--ref REF names it")
		}
		c.refs = []string{r.run.Word}
		return c, nil
	}
	if err := r.need(ctx, []string{"diagnose.cause"}); err != nil {
		return c, err
	}
	if r.facts.diagnosis == nil && r.facts.inspected == nil {
		return c, fault.New(fault.KindUnavailable, "there is no diagnosis that names them")
	}
	suspects := r.refsOf(possible)
	if a.Targets == "stuck" {
		suspects = r.stuckOnes()
	}
	if r.run.Word != "" {
		var err error
		if suspects, c.none, err = r.onlyNamed(ctx, suspects, a, possible); err != nil {
			return c, err
		}
	}
	for _, one := range suspects {
		cause := one.cause
		if possible != "" {
			cause = triage.PossibleCauseLabel(string(possible))
		}
		reason := triage.WithCause(cause, one.reason)
		switch {
		case one.stuck:
		case r.watch.Attended():
			reason += "; suspected: it is not known to be stuck"
		default:
			c.kept = append(
				c.kept,
				Target{
					Ref: one.Ref, Reason: "suspected of " + triage.PossibleCauseLabel(string(possible)) + ", and not known to be stuck",
					KeptBecause: "not known to be stuck",
				},
			)
			continue
		}
		c.refs = append(c.refs, one.Ref)
		c.why[one.Ref], c.cause[one.Ref] = reason, cause
	}
	return c, nil
}

// aboutAll says why a run about one sandbox leaves an act out; "" = it does not.
func (r *runner) aboutAll(a runbook.Act) string {
	if r.run.Word == "" || a.Action != "cleanup" && a.Action != "reconcile" {
		return ""
	}
	what := string(a.Action)
	if a.Emergency {
		what = "an emergency cleanup"
	}
	return fmt.Sprintf("%s is about all sandboxes, and --ref names %s alone", what, r.run.Word)
}

// onlyNamed leaves the sandbox that --ref names, where it is among the suspects, or says why none is
// left.
func (r *runner) onlyNamed(ctx context.Context, suspects []suspect, a runbook.Act, possible runbook.Word) (left []suspect, none string, err error) {
	if r.facts.inspected == nil {
		err = r.readAll(ctx, []source{fromInspect})[0].err
	}
	switch d := r.facts.inspected; {
	case fault.KindOf(err) == fault.KindNotFound, fault.KindOf(err) == fault.KindGone:
		return nil, "--ref names " + r.run.Word + ", which is not there", nil
	case err != nil:
		return nil, "", err
	case d == nil || d.Inspected == nil:
		return nil, "--ref names " + r.run.Word + ", which has no sandbox now", nil
	default:
		ref := d.Inspected.Seen.Sandbox.Ref().String()
		left = slices.DeleteFunc(suspects, func(s suspect) bool { return s.Ref != ref })
		if len(left) == 0 && a.Targets == "stuck" {
			none = "--ref names " + ref + ", which is not known to be stuck"
		} else if len(left) == 0 {
			none = "--ref names " + ref + ", which is not among those with the cause " + triage.PossibleCauseLabel(string(possible))
		}
		return left, none, nil
	}
}

// stuckOnes are all stuck sandboxes but those whose end was requested before: as in a cleanup, only a person who names
// one requests it again.
func (r *runner) stuckOnes() (all []suspect) {
	if d := r.facts.diagnosis; d != nil {
		for _, g := range d.Stuck {
			if g.Cause != sandbox.CauseEnding {
				all = addGroups(all, []ops.CauseGroup{g}, g.Cause, true)
			}
		}
	}
	if d := r.facts.inspected; d != nil && d.Inspected != nil && d.Inspected.Verdict.Stuck == sandbox.True && d.Inspected.Verdict.Cause != sandbox.CauseEnding {
		one := inspectedSuspect(d.Inspected)
		if r.facts.diagnosis == nil || r.run.Word != "" && !slices.ContainsFunc(all, func(have suspect) bool { return have.Ref == one.Ref }) {
			all = append(all, one)
		}
	}
	return all
}
