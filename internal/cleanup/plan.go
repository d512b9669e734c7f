package cleanup

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
)

// PlanSchema marks a plan file.
const PlanSchema = "sbx.cleanup-plan/v1"

// Plan is what a run may end at most, as a person has read it.
type Plan struct {
	Schema string    `json:"schema"`
	RunID  string    `json:"run_id"`
	MadeAt time.Time `json:"made_at"`
	Cutoff time.Time `json:"cutoff"` // what came to be before is old enough; zero without an age
	Rule   Rule      `json:"rule"`
	Items  []Item    `json:"items"`
}

// Item is one sandbox of a plan, with what must still be so when it is ended.
type Item struct {
	Ref       sandbox.Ref   `json:"ref"`
	Name      string        `json:"name,omitempty"`
	State     sandbox.State `json:"state"`
	CreatedAt time.Time     `json:"created_at,omitzero"`
	Owner     string        `json:"owner,omitempty"`
	Owned     string        `json:"owned,omitempty"` // by which rule of its profile it was ours; "" = by none
	Reason    string        `json:"reason"`
	// Excluded is why the run that applies a plan may not end it: no guard of that run
	// has counted it. "" = it may. A resume keeps to it.
	Excluded string `json:"excluded,omitempty"`
}

// Plan makes the plan of a survey.
func (s Survey) Plan(runID string) Plan {
	p := Plan{Schema: PlanSchema, RunID: runID, MadeAt: s.At.UTC(), Cutoff: s.Cutoff(), Rule: s.Rule, Items: []Item{}}
	for _, j := range s.Selected {
		p.Items = append(p.Items, itemOf(j))
	}
	return p
}

func itemOf(j Judgement) Item {
	s := j.Sandbox
	return Item{Ref: s.Ref(), Name: s.Name, State: s.State, CreatedAt: s.CreatedAt.UTC(), Owner: s.Labels[sandbox.LabelOwner], Owned: j.owned, Reason: j.Reason}
}

// Cutoff is the moment before which a sandbox must have come to be; zero without an
// age.
func (s Survey) Cutoff() time.Time {
	if s.Rule.Selector.OlderThan == 0 {
		return time.Time{}
	}
	return s.At.Add(-s.Rule.Selector.OlderThan).UTC()
}

// Check refuses a plan that is not one, or that is older than maxAge.
func (p Plan) Check(now time.Time, maxAge time.Duration) error {
	age := now.Sub(p.MadeAt)
	switch {
	case p.Schema != PlanSchema:
		return fault.Usage("this is no plan of sbx cleanup: its schema is %q", p.Schema).WithHint(hintPlan)
	case p.MadeAt.IsZero() || age < 0:
		return fault.New(fault.KindRefused, "the plan says that it was made at %s, which lies in the future", p.MadeAt.Format(time.RFC3339)).
			WithHint("is the clock of this machine right? if it is, make a new plan")
	case age > maxAge:
		return fault.New(fault.KindRefused, "the plan is %s old, older than --max-plan-age %s", sandbox.FormatDuration(age), sandbox.FormatDuration(maxAge)).
			WithHint("make a new one: what it says may not be so any more")
	}
	seen := map[sandbox.Ref]bool{}
	for _, i := range p.Items {
		parsed, err := sandbox.ParseRef(i.Ref.String())
		switch {
		case i.Ref.Bare():
			return fault.Usage("the plan names %q without its profile", i.Ref)
		case err != nil || parsed != i.Ref:
			return fault.Usage("the plan names %q, which no reference can be", i.Ref.String())
		case seen[i.Ref]:
			return fault.Usage("the plan names %s twice", i.Ref).WithHint("each sandbox has one outcome: make a new plan")
		}
		seen[i.Ref] = true
	}
	if len(p.Items) > 0 && !p.Rule.Chooses() {
		return fault.Usage("the rule of the plan has no selector").WithHint(hintPlan)
	}
	return p.Rule.check()
}

// hintPlan is what to do about a plan that is none.
const hintPlan = "`sbx cleanup ... --out PLAN` writes a plan"

// check refuses what no command line can say, by the rules of the flags: a negative age
// would select everything, and so would a rule that chooses nothing.
func (r Rule) check() error {
	for name, d := range map[string]time.Duration{
		"older_than_ns": r.Selector.OlderThan, "younger_than_ns": r.Selector.YoungerThan, "failed_older_than_ns": r.FailedOlderThan, "idle_for_ns": r.IdleFor, "notify_before_ns": r.NotifyBefore,
	} {
		if d < 0 {
			return fault.Usage("the rule of the plan has a negative %s", name).WithHint(hintPlan)
		}
	}
	if err := r.Selector.Check(); err != nil {
		return fault.Usage("the rule of the plan: %w", err).WithHint(hintPlan)
	}
	if r.Selector.Limit != 0 || r.Selector.Sort != (selector.Order{}) {
		return fault.Usage("the rule of the plan has a limit or an order, which cleanup does not take: it never ends the first N").WithHint(hintPlan)
	}
	return nil
}

// holds says what of an item is not so any more; "" = it is what was planned.
func (i Item) holds(now sandbox.Sandbox) string {
	switch {
	case now.State != i.State:
		return "it was " + string(i.State) + " and is " + string(now.State) + " now"
	case !i.CreatedAt.Equal(now.CreatedAt) && !i.CreatedAt.IsZero():
		return "another sandbox has its id now"
	case i.Owner != now.Labels[sandbox.LabelOwner]:
		return "its owner is another one now"
	}
	return ""
}
