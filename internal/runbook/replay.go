package runbook

import (
	"context"
	"slices"
	"strings"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/snapshot"
)

// Conditions are those of a runbook, ready to be held against the facts of providers.
type Conditions struct {
	id          string
	checks      []namedCondition
	theories    []string
	escalations []namedCondition
}

type namedCondition struct {
	id        string
	condition *cond.Condition[*Facts]
}

// Conditions are the steps that check something, the branches and the escalations. A document that
// lint finds wrong may have none.
func (r *Runbook) Conditions() (*Conditions, error) {
	c := &Conditions{id: string(r.Metadata.ID)}
	schema := Schema(r.Spec.Vars)
	add := func(to *[]namedCondition, id string, text Condition) error {
		compiled, err := cond.Compile(string(text), schema)
		if err == nil {
			*to = append(*to, namedCondition{id, compiled})
		}
		return err
	}
	steps := slices.Clone(r.Spec.Steps)
	for _, cause := range r.Spec.Causes {
		c.theories = append(c.theories, string(cause.Theory))
		steps = append(steps, cause.Steps...)
	}
	for _, p := range r.Spec.Procedures {
		steps = append(steps, p.Steps...)
	}
	for _, s := range append(steps, r.Spec.Verification...) {
		if s.Kind() != KindCheck {
			continue
		}
		if err := add(&c.checks, string(s.ID), s.Check); err != nil {
			return nil, err
		}
	}
	for _, e := range r.Spec.Escalation {
		id, text := string(e.When), e.When
		if e.Alert != "" {
			id, text = string(e.Alert), Condition(alertPrefix+string(e.Alert))
		}
		if err := add(&c.escalations, id, text); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// noCause is the first cause of a diagnosis that has found none.
const noCause = "none"

// FactsOf are the facts of each provider by what a look showed.
func FactsOf(subjects []check.Subject, c snapshot.Concluded) []Facts {
	var all []Facts
	for _, s := range subjects {
		f := Facts{Subject: s, Checks: map[string]sandbox.Verdict{}, Cause: noCause}
		for _, check := range c.Checks {
			f.Checks[check.ID] = check.Verdict
		}
		if len(c.Causes) > 0 {
			f.Cause, f.Confidence = c.Causes[0].ID, c.Causes[0].Confidence
		}
		all = append(all, f)
	}
	return all
}

// Against is what the runbook says of the facts. A condition holds if it holds for one provider. A
// branch is selected where the diagnosis names its cause as certain or probable.
func (c *Conditions) Against(facts []Facts, causes []snapshot.Cause) snapshot.Runbook {
	b := snapshot.Runbook{ID: c.id, Checks: answersOf(c.checks, facts), Causes: []string{}, Escalations: answersOf(c.escalations, facts)}
	for _, theory := range c.theories {
		likely := func(found snapshot.Cause) bool {
			return found.ID == theory && (found.Confidence == sandbox.Certain || found.Confidence == sandbox.Probable)
		}
		if slices.ContainsFunc(causes, likely) {
			b.Causes = append(b.Causes, theory)
		}
	}
	return b
}

// answersOf are the conditions that hold or are not known.
func answersOf(all []namedCondition, facts []Facts) []snapshot.Answer {
	answers := []snapshot.Answer{}
	for _, n := range all {
		if v := anyHolds(n.condition, facts); v != sandbox.False {
			answers = append(answers, snapshot.Answer{ID: n.id, Verdict: v})
		}
	}
	return answers
}

// anyHolds is true where the condition holds for one, else unknown where it is not known for one.
func anyHolds(c *cond.Condition[*Facts], facts []Facts) sandbox.Verdict {
	if len(facts) == 0 {
		return sandbox.Unknown
	}
	v := sandbox.False
	for i := range facts {
		switch c.Eval(&facts[i]) {
		case sandbox.True:
			return sandbox.True
		case sandbox.Unknown:
			v = sandbox.Unknown
		case sandbox.False:
		}
	}
	return v
}

// AddConclusions records in a snapshot what runbooks say of the look from which it was made.
func AddConclusions(s *snapshot.Snapshot, subjects []check.Subject, books []*Runbook) error {
	for _, b := range books {
		c, err := b.Conditions()
		if err != nil {
			return err
		}
		s.Concluded.Runbooks = append(s.Concluded.Runbooks, c.Against(FactsOf(subjects, s.Concluded), s.Concluded.Causes))
	}
	return nil
}

// Test is a recorded look, judged again.
type Test struct {
	ops.RecordedLook

	Changes  []snapshot.Change // of what was concluded
	Settings []snapshot.Change // thresholds that differ from those in force then

	now look.Replayed
}

// TestLooks judges recorded looks again, by the settings in force now and by runbooks, and compares
// with what was recorded.
func TestLooks(ctx context.Context, env *ops.Env, looks []ops.RecordedLook, books []*Runbook) ([]Test, error) {
	var conditions []*Conditions
	for _, b := range books {
		c, err := b.Conditions()
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, c)
	}
	var all []Test
	for _, past := range looks {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		t := Test{RecordedLook: past}
		if past.Err == nil {
			t.now = look.Replay(ctx, env, past.Snapshot)
			facts := FactsOf(t.now.Subjects, t.now.Concluded)
			for _, c := range conditions {
				t.now.Concluded.Runbooks = append(t.now.Concluded.Runbooks, c.Against(facts, t.now.Concluded.Causes))
			}
			t.Changes = snapshot.CompareConclusions(past.Snapshot.Concluded, t.now.Concluded)
			t.Settings = snapshot.CompareSettings(past.Snapshot.Settings, t.now.Settings)
		}
		all = append(all, t)
	}
	return all, nil
}

// Accept records in the file what the look shows now, as the expectation of later tests.
func (t *Test) Accept() error {
	now := t.now.Concluded
	for _, before := range t.Snapshot.Concluded.Runbooks { // those that were not tested stay
		if !slices.ContainsFunc(now.Runbooks, func(b snapshot.Runbook) bool { return b.ID == before.ID }) {
			now.Runbooks = append(now.Runbooks, before)
		}
	}
	slices.SortStableFunc(now.Runbooks, func(a, b snapshot.Runbook) int { return strings.Compare(a.ID, b.ID) })
	t.Snapshot.Concluded, t.Snapshot.Settings = now, t.now.Settings
	return t.Write()
}
