package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/ops/look"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// quantifier says of how many providers a condition has to hold.
type quantifier int

const (
	ofAny   quantifier = iota // what is wrong is wrong where one has it
	ofEvery                   // what is proved is proved where all have it
)

// evaluate is the verdict of a condition over what is known of the selected providers, with what was
// compared. What its names need is read first.
func (r *runner) evaluate(ctx context.Context, text runbook.Condition, q quantifier) (sandbox.Verdict, []string) {
	c, err := cond.Compile(string(text), r.schema)
	if err != nil { // lint has refused those
		return sandbox.Unknown, []string{err.Error()}
	}
	names := c.Names()
	lost := r.need(ctx, runbook.ReadNames(names))
	var verdicts []sandbox.Verdict
	var evidence []string
	figures := r.checkEvidence(names)
	for _, have := range r.facts.each() {
		e := c.Explain(have)
		verdicts = append(verdicts, e.Verdict)
		if len(figures) > 0 && len(names) == 1 { // they say more
			continue
		}
		line := explained(e, string(text), have)
		if len(r.facts.names) > 1 && !sameForAll(names) {
			line = have.Provider + ": " + line
		}
		if !slices.Contains(evidence, line) {
			evidence = append(evidence, line)
		}
	}
	evidence = append(evidence, figures...)
	if lost != nil {
		evidence = append(evidence, "not read: "+oneLine(lost))
	}
	return combine(verdicts, q), evidence
}

// combine is the verdict of all providers together. Without any it is not known.
func combine(verdicts []sandbox.Verdict, q quantifier) sandbox.Verdict {
	decisive, other := sandbox.True, sandbox.False
	if q == ofEvery {
		decisive, other = sandbox.False, sandbox.True
	}
	switch {
	case slices.Contains(verdicts, decisive):
		return decisive
	case len(verdicts) == 0 || slices.ContainsFunc(verdicts, func(v sandbox.Verdict) bool { return v != other }):
		return sandbox.Unknown
	}
	return other
}

// explained is what a condition has compared. An alert is explained by its own condition.
func explained(e cond.Explanation, text string, have *runbook.Facts) string {
	id, isAlert := strings.CutPrefix(text, "alert.")
	if rule, known := check.Alert(id); isAlert && known {
		e = rule.Explain(&have.Subject)
	}
	return e.String()
}

// sameForAll says that the names have one value for all providers.
func sameForAll(names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool {
		return !strings.HasPrefix(n, "verify.") && !strings.HasPrefix(n, "diagnose.") && !strings.HasPrefix(n, "sandbox.")
	})
}

// checkEvidence are the figures behind the checks of verify that a condition names.
func (r *runner) checkEvidence(names []string) []string {
	var all []string
	if r.facts.verified == nil {
		return nil
	}
	for _, c := range r.facts.verified.Checks {
		if slices.Contains(names, "verify."+c.ID) {
			all = append(all, c.Title+": "+targetText(c))
			for _, e := range c.Evidence[:min(len(c.Evidence), maxShown)] {
				all = append(all, e.What+": "+e.Value)
			}
		}
	}
	return all
}

// targetText is a figure beside its target.
func targetText(c look.TargetCheck) string { return figureText(c.Figure, c.Outcome) }

func figureText(f task.Figure, v sandbox.Verdict) string {
	value := "not known"
	if f.Value != nil {
		value = amountText(*f.Value, f.Unit)
	}
	if f.Target.Sign == "" {
		return value
	}
	word := map[sandbox.Verdict]string{sandbox.True: "met", sandbox.False: "missed", sandbox.Unknown: "not known whether it is met"}[v]
	return fmt.Sprintf("%s, target %s %s: %s", value, f.Target.Sign, amountText(f.Target.Bound, f.Unit), word)
}

func amountText(v float64, unit task.Unit) string {
	switch unit {
	case task.UnitShare:
		return strconv.FormatFloat(v*100, 'f', 1, 64) + "%"
	case task.UnitSeconds:
		return strconv.FormatFloat(v, 'f', 0, 64) + "s"
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}

// holdsFor is the verdict of a condition for one provider.
func (r *runner) holdsFor(ctx context.Context, text runbook.Condition, provider string) sandbox.Verdict {
	c, err := cond.Compile(string(text), r.schema)
	if err != nil || r.need(ctx, runbook.ReadNames(c.Names())) != nil {
		return sandbox.Unknown
	}
	return c.Eval(r.facts.of(provider))
}
