package cleanup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// Rule is which sandboxes a run selects, as the operator asked for it.
type Rule struct {
	Selector        selector.Selector `json:"selector"`
	FailedOlderThan time.Duration     `json:"failed_older_than_ns,omitempty"` // the age for failed ones instead of Selector.OlderThan; 0 = none
	IdleFor         time.Duration     `json:"idle_for_ns,omitempty"`          // required silence of a running one; 0 = the threshold inactivity of each
	IgnoreActivity  bool              `json:"ignore_activity,omitempty"`      // age alone is enough
	IncludePaused   bool              `json:"include_paused,omitempty"`
	IncludeFailed   bool              `json:"include_failed,omitempty"` // also failed ones that remain at their provider, of any age without FailedOlderThan
	Unowned         bool              `json:"unowned,omitempty"`        // also those of other owners
	Unhealthy       bool              `json:"unhealthy,omitempty"`      // only those that do not answer (R138)
	Delete          bool              `json:"delete,omitempty"`         // also destroy what the provider would keep
}

// Chooses reports whether the rule selects by anything at all.
func (r Rule) Chooses() bool {
	return !r.Selector.Empty() || r.FailedOlderThan > 0 || r.Unhealthy
}

// Key names the rule for what is remembered of it between runs. Moments (--before, --after) do not count:
// a cron line may compute them anew at each run.
func (r Rule) Key() string {
	r.Selector.Before, r.Selector.After = time.Time{}, time.Time{}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers, words and lists of them
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// selectorFor is the selector for a sandbox of this state: failed ones have an age of their
// own. False = the rule does not cover this state.
func (r Rule) selectorFor(state sandbox.State) (selector.Selector, bool) {
	s := r.Selector
	s.All = true // guards see every sandbox
	if state == sandbox.StateFailed && r.IncludeFailed {
		s.Stuck, s.OlderThan = false, max(r.FailedOlderThan, time.Nanosecond) // of any known age
		return s, true
	}
	if r.FailedOlderThan == 0 {
		return s, true
	}
	if state != sandbox.StateFailed {
		return s, !r.Selector.Empty() || r.Unhealthy
	}
	s.OlderThan = r.FailedOlderThan
	return s, true
}

// Profile is the configuration of one profile.
type Profile struct {
	Name      string
	Owns      func(labels map[string]string) bool // nil = all
	OwnedRule string                              // in words: "sbx/owner=*"
	// OwnerUnset reports that ownership is not configured. Sandboxes of other owners are
	// then judged completely, so that a run can count what it leaves.
	OwnerUnset bool
}

// Environment is everything from outside the package.
type Environment struct {
	Now      func() time.Time
	Profiles []Profile
	Limits   safety.Limits
	// FirstSeen is when an earlier run first saw a sandbox without an age; zero or nil
	// = never.
	FirstSeen  func(sandbox.Sandbox) time.Time
	Protected  func(sandbox.Sandbox) string            // why a rule may not end it (safety.Protection.ByRule); "" = it may
	Thresholds func(sandbox.Sandbox) triage.Thresholds // of its profile and agent type
	Listed     func(n int)                             // is told how many were listed so far; nil = nobody
	Looked     func(fleet.LookProgress)                // is told how far the look is; nil = nobody
	Brief      bool                                    // of what was looked at, stays and is not stuck, neither steps nor evidence are kept

	endsFailed func(profile string) bool // fleet.EndsFailed; nil = no profile does
}

// canEndFailed reports whether a failed sandbox of a profile can be ended without --delete.
func (w Environment) canEndFailed(profile string) bool {
	return w.endsFailed != nil && w.endsFailed(profile)
}

func (w Environment) profileNamed(name string) Profile {
	i := slices.IndexFunc(w.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{Name: name, Owns: func(map[string]string) bool { return false }}
	}
	return w.Profiles[i]
}

// withKnownAge gives a sandbox without an age the time at which an earlier run saw it: it
// is at least that old.
func (w Environment) withKnownAge(s sandbox.Sandbox) sandbox.Sandbox {
	if w.FirstSeen != nil && s.CreatedAt.IsZero() && s.StartedAt.IsZero() && s.FirstSeenAt.IsZero() {
		s.FirstSeenAt = w.FirstSeen(s)
	}
	return s
}

func (p Profile) ownsSandbox(labels map[string]string) bool { return p.Owns == nil || p.Owns(labels) }

// PlanSchema is the schema of a plan file.
const PlanSchema = "sbx.cleanup-plan/v1"

// Plan is the largest set that a run may end, as an operator has reviewed it.
type Plan struct {
	Schema string      `json:"schema"`
	RunID  string      `json:"run_id"`
	MadeAt time.Time   `json:"made_at"`
	Cutoff time.Time   `json:"cutoff"` // sandboxes created before are old enough; zero without an age
	Rule   Rule        `json:"rule"`
	Items  []runs.Item `json:"items"`
}

// Recorded is the plan as a journal keeps it.
func (p Plan) Recorded() runs.Plan {
	rule, err := json.Marshal(p.Rule)
	if err != nil {
		panic(err) // numbers, words and lists of them
	}
	return runs.Plan{Schema: p.Schema, RunID: p.RunID, MadeAt: p.MadeAt, Cutoff: p.Cutoff, Rule: rule, Items: p.Items}
}

// Plan makes the plan of a survey.
func (s Survey) Plan(runID string) Plan {
	p := Plan{Schema: PlanSchema, RunID: runID, MadeAt: s.At.UTC(), Cutoff: s.Cutoff(), Rule: s.Rule, Items: []runs.Item{}}
	for _, j := range s.Selected {
		p.Items = append(p.Items, newItem(j))
	}
	return p
}

func newItem(j Judgement) runs.Item {
	s := j.Sandbox
	return runs.Item{
		Ref: s.Ref(), Name: s.Name, State: s.State, CreatedAt: s.CreatedAt.UTC(), Owner: s.Labels[sandbox.LabelOwner], Owned: j.owned, Reason: j.Reason,
		Cause: j.Verdict.Cause,
	}
}

// Cutoff is the time before which a sandbox must have been created; zero without an age.
func (s Survey) Cutoff() time.Time {
	if s.Rule.Selector.OlderThan == 0 {
		return time.Time{}
	}
	return s.At.Add(-s.Rule.Selector.OlderThan).UTC()
}

// Check refuses an invalid plan, and one older than maxAge.
func (p Plan) Check(now time.Time, maxAge time.Duration) error {
	age := now.Sub(p.MadeAt)
	switch {
	case p.Schema != PlanSchema:
		return fault.Usage("not a plan of sbx cleanup: its schema is %q", p.Schema).WithHint(hintPlan)
	case p.MadeAt.IsZero() || age < 0:
		return fault.New(fault.KindRefused, "the plan was made at %s, which is in the future", p.MadeAt.Format(time.RFC3339)).
			WithHint("check the clock of this machine; if it is right, make a new plan")
	case age > maxAge:
		return fault.New(fault.KindRefused, "the plan is %s old, older than --max-plan-age %s", sandbox.FormatDuration(age), sandbox.FormatDuration(maxAge)).
			WithHint("make a new one: the sandboxes may have changed")
	}
	seen := map[sandbox.Ref]bool{}
	for _, i := range p.Items {
		parsed, err := sandbox.ParseRef(i.Ref.String())
		switch {
		case i.Ref.Bare():
			return fault.Usage("the plan names %q without its profile", i.Ref)
		case err != nil || parsed != i.Ref:
			return fault.Usage("the plan names %q, which is not a reference", i.Ref.String())
		case seen[i.Ref]:
			return fault.Usage("the plan names %s twice", i.Ref).WithHint("each sandbox has one outcome: make a new plan")
		}
		seen[i.Ref] = true
	}
	if len(p.Items) > 0 && !p.Rule.Chooses() {
		return fault.Usage("the rule of the plan has no selector").WithHint(hintPlan)
	}
	return p.Rule.validateRule()
}

// hintPlan is the hint for an invalid plan.
const hintPlan = "`sbx cleanup ... --out PLAN` writes a plan"

// validateRule refuses values that no flag allows: a negative age would select everything,
// and so would a rule without a selector.
func (r Rule) validateRule() error {
	for name, d := range map[string]time.Duration{
		"older_than_ns": r.Selector.OlderThan, "younger_than_ns": r.Selector.YoungerThan, "failed_older_than_ns": r.FailedOlderThan, "idle_for_ns": r.IdleFor,
	} {
		if d < 0 {
			return fault.Usage("the rule of the plan has a negative %s", name).WithHint(hintPlan)
		}
	}
	if err := r.Selector.Check(); err != nil {
		return fault.Usage("the rule of the plan: %w", err).WithHint(hintPlan)
	}
	if r.Selector.Limit != 0 || r.Selector.Sort != (selector.Order{}) {
		return fault.Usage("the rule of the plan has a limit or an order, which cleanup does not accept: it never terminates only the first N").WithHint(hintPlan)
	}
	return nil
}

// changedSince describes what of an item does not hold any more; "" = it is as planned.
func changedSince(i runs.Item, now sandbox.Sandbox) string {
	switch {
	case now.State != i.State:
		return "it was " + string(i.State) + " and is " + string(now.State) + " now"
	case !i.CreatedAt.Equal(now.CreatedAt) && !i.CreatedAt.IsZero():
		return "another sandbox has this id now"
	case i.Owner != now.Labels[sandbox.LabelOwner]:
		return "it has another owner now"
	}
	return ""
}
