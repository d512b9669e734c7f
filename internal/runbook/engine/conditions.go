package engine

import (
	"context"
	"slices"
	"strings"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/ops"
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
// seen, in words; what decides comes first. What its names need is read first.
func (r *runner) evaluate(ctx context.Context, text runbook.Condition, q quantifier) (sandbox.Verdict, []string) {
	c, err := cond.Compile(string(text), r.schema)
	if err != nil { // lint has refused those
		return sandbox.Unknown, []string{err.Error()}
	}
	names := c.Names()
	lost := r.need(ctx, runbook.ReadNames(names))
	var verdicts []sandbox.Verdict
	var seen []*sight
	for _, have := range r.facts.each() {
		e := c.Explain(have)
		verdicts = append(verdicts, e.Verdict)
		words := explained(e, string(text), have)
		at := slices.IndexFunc(seen, func(s *sight) bool { return s.words == words })
		if at < 0 {
			seen, at = append(seen, &sight{words: words, verdict: e.Verdict}), len(seen)
		}
		seen[at].profiles = append(seen[at].profiles, have.Provider)
	}
	verdict, figures := combine(verdicts, q), r.checkEvidence(names)
	var deciding, others []string
	for _, s := range seen {
		if len(s.profiles) < len(verdicts) {
			s.words = strings.Join(s.profiles, ", ") + ": " + s.words
		}
		if s.verdict == verdict {
			deciding = append(deciding, s.words)
		} else {
			others = append(others, s.words)
		}
	}
	evidence := append(deciding, others...)
	if len(figures) > 0 && len(names) == 1 { // they say more
		evidence = nil
	}
	evidence = append(evidence, figures...)
	if lost != nil {
		evidence = append(evidence, "not read: "+oneLine(lost))
	}
	return verdict, evidence
}

// sight is what a condition has seen, of the profiles for which it is the same.
type sight struct {
	words    string
	verdict  sandbox.Verdict
	profiles []string
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
	return e.Words()
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

// targetText is a figure beside its target, with the word of verify for it.
func targetText(c look.TargetCheck) string { return figureText(c.Figure, strings.ToLower(c.Word())) }

func figureText(f task.Figure, word string) string {
	value := "not known"
	if f.Value != nil {
		value = ops.FigureText(*f.Value, f.Unit)
	}
	switch bound := ", target " + f.Target.Sign + " " + ops.FigureText(f.Target.Bound, f.Unit); {
	case f.Target.Sign == "":
		return value
	case f.Value == nil && word != "missed":
		return word + bound
	default:
		return value + bound + ": " + word
	}
}

// holdsFor is the verdict of a condition for one provider, and what was seen.
func (r *runner) holdsFor(ctx context.Context, text runbook.Condition, provider string) (sandbox.Verdict, string) {
	c, err := cond.Compile(string(text), r.schema)
	if err != nil || r.need(ctx, runbook.ReadNames(c.Names())) != nil {
		return sandbox.Unknown, ""
	}
	e := c.Explain(r.facts.of(provider))
	return e.Verdict, e.Words()
}
