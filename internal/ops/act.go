package ops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// Act is an operation that was planned and has not begun. It is frozen: Do acts on at most its targets,
// and the operation reads or judges each of them again just before. Command line, runbooks and dashboard
// act through it, but for `cleanup --yes` and `reconcile --fix --yes`, which look and act under one lock.
type Act struct {
	Verb      string         // what is done to a target: "terminate"
	RunID     string         // of the run that Do is; "" = Do chooses it
	At        time.Time      // when it was planned
	Targets   []PlannedEnd   // what it would act on; a task or a profile is a reference without a provider
	Kept      []PlannedEnd   // what stays, and why
	Unowned   int            // how many of those stay since nobody owns them
	Own       string         // the command that makes those the operator's; "" = there are none
	Guards    []safety.Guard // its limits
	Objection string         // what a person should know first; "" = nothing
	Refused   error          // why it is refused, and no answer allows it; nil = it is not
	Allow     string         // the flags that allow what is refused, as does a person who has counted it; "" = nothing does
	Failed    error          // why nothing could be read; nil = something was
	Errors    []error        // what named nothing, and what could not be read
	Verdict   error          // of the plan, by its errors
	Asks      []Question     // what its command line asks first, one after the other
	Named     []string       // production profiles that its command line has named
	Seen      bool           // a person has seen the targets: no question shows them again
	Line      []string       // as a person types it, quoted for a shell; nil = the request had none

	// Rehearse moves what its provider would refuse from Targets to Kept; nil = that is done, or cannot be known.
	Rehearse func(ctx context.Context, a *Act)
	Execute  func(ctx context.Context, watch Observer, allowed Allowed) ActResult
}

// allows says whether a target may be acted on.
func (a Allowed) allows(ref sandbox.Ref) bool {
	return a.Targets == nil || slices.Contains(a.Targets, ref)
}

// Narrow leaves the items that were allowed; of is the target that an item belongs to.
func Narrow[T any](a Allowed, items []T, of func(T) sandbox.Ref) []T {
	return slices.DeleteFunc(slices.Clone(items), func(item T) bool { return !a.allows(of(item)) })
}

// Allowed is what a person or a flag has allowed of an act.
type Allowed struct {
	Targets    []sandbox.Ref // at most these; nil = all
	Production []string      // production profiles that were named
	Counted    bool          // a person has typed how many there are, which is a limit of its own
	Asked      bool          // what the act asks was answered: by Permit, or on a screen, or flags have allowed it
}

// ActResult is what an operation has done.
type ActResult struct {
	RunID   string
	Endings []sandbox.Ending // of its targets, of tasks too
	Err     error            // why it began nothing, else of what went wrong
	Refused error            // why it began nothing; nil = it did
	Took    time.Duration    // from the first request to the last outcome
	Detail  any              // the result as the operation itself gives it; nil = it has no other, or has begun nothing
}

// NotBegun is the result of an act that has begun nothing.
func NotBegun(runID string, why error) ActResult {
	return ActResult{RunID: runID, Err: why, Refused: why}
}

// Permit asks what the act wants answered, and says what was allowed. An error is why it may not be done: it is
// refused, or an answer was another (ErrDeclined where its question says nothing else).
func (a *Act) Permit(ctx context.Context, ask Asker) (Allowed, error) {
	allowed := Allowed{Production: slices.Clone(a.Named)}
	if a.Refused != nil {
		return allowed, a.Refused
	}
	if a.Rehearse != nil && len(a.Asks) > 0 {
		a.Rehearse(ctx, a)
	}
	for _, q := range a.Asks {
		if !a.Seen {
			q.Targets = a.sandboxes()
		}
		switch yes, err := ask(ctx, q); {
		case err != nil:
			return allowed, CauseOr(ctx, err)
		case !yes && q.Refusal != nil:
			return allowed, q.Refusal
		case !yes:
			return allowed, ErrDeclined
		}
		if slices.Contains(a.Profiles(), q.Word) {
			allowed.Production = append(allowed.Production, q.Word)
		}
	}
	allowed.Asked = true
	return allowed, nil
}

// ErrDeclined is the answer of a person who wants nothing done.
var ErrDeclined = fault.New(fault.KindRefused, "the answer was no")

// Do carries the act out. Items are those of the operation. Without an answer to what it asks it begins nothing.
func (a *Act) Do(ctx context.Context, watch Observer, allowed Allowed) ActResult {
	if len(a.Asks) > 0 && !allowed.Asked {
		return NotBegun(a.RunID, fault.New(fault.KindRefused, "nobody was asked whether to %s them", a.Verb))
	}
	return a.Execute(ctx, watch, allowed)
}

// Refs are the references of the targets.
func (a *Act) Refs() []sandbox.Ref {
	refs := make([]sandbox.Ref, len(a.Targets))
	for i, t := range a.Targets {
		refs[i] = t.Ref
	}
	return refs
}

// Profiles are the profiles of the targets, in the order of the targets.
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

// Questions are the questions of a screen, one for each of the answers; the first shows the plan.
func (a *Act) Questions(answers []string) []Question {
	what := "it" // the plan names it; what an API calls it does not belong into a prompt
	if len(a.Targets) != 1 {
		what = fmt.Sprintf("these %d", len(a.Targets))
	}
	all := make([]Question, len(answers))
	for i, w := range answers {
		all[i] = Question{Word: w, Prompt: fmt.Sprintf("type %s to %s %s, no to leave it: ", w, a.Verb, what)}
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

// CountQuestions are the Questions of a screen whose keys are pressed by mistake: always by the number.
func (a *Act) CountQuestions(env *Env) []Question {
	return a.Questions(safety.Answers(safety.AskCount, len(a.Targets), a.Unnamed(env, nil)))
}

// CheckGrown refuses an act that has more targets than those that were confirmed.
func CheckGrown(confirmed []sandbox.Ref, targets []PlannedEnd) error {
	for _, t := range targets {
		if !slices.Contains(confirmed, t.Ref) {
			return fault.New(fault.KindRefused, "the plan has grown since it was confirmed: %s is new; nothing was done", t.Ref).WithHint("plan it again")
		}
	}
	return nil
}

// PlannedEnd is one sandbox of a plan, and why it would end or stay.
type PlannedEnd struct {
	Ref         sandbox.Ref     `json:"ref"`    // PROFILE/ID.
	Reason      string          `json:"reason"` // Why it is selected or kept.
	KeptBecause string          `json:"-"`      // Why a found one stays, in a word or two: "not yours"; "" = nothing was found of it.
	Cause       string          `json:"-"`      // What is wrong with it, in a word or two; "" = it is not known, or nothing is.
	Sandbox     sandbox.Sandbox `json:"-"`
}

// RunStarted is an item of operations that end sandboxes: from now on it acts.
type RunStarted struct{ RunID string }
