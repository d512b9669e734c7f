package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"

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
	Unowned   int          // how many of those stay since nobody owns them
	Own       string       // the command that makes those the operator's; "" = there are none
	Objection string       // what a person should know first; "" = nothing
	Refused   error        // why it is refused, and no answer allows it; nil = it is not
	Allow     string       // the flags that allow what is refused, as does a person who has counted it; "" = nothing does
	Failed    error        // why nothing could be read; nil = something was
	Line      []string     // as a person types it, quoted for a shell; nil = the request had none

	Carry func(ctx context.Context, watch Observer, allowed Allowed) ActResult
}

// Allowed is what a person or a flag has allowed of an act.
type Allowed struct {
	Targets    []sandbox.Ref // at most these; nil = all
	Production []string      // production profiles that were named
	Counted    bool          // a person has typed how many there are, which is a limit of its own
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
	return a.Carry(ctx, o, allowed)
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

// CountQuestions are Questions by the number of the targets.
func (a *Act) CountQuestions(env *Env) []Question {
	return a.Questions(strconv.Itoa(len(a.Targets)), a.Unnamed(env, nil))
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

// PlannedEnd is one sandbox of a plan, and why it would end or stay.
type PlannedEnd struct {
	Ref     sandbox.Ref     `json:"ref"`    // PROFILE/ID.
	Reason  string          `json:"reason"` // Why it is selected or kept.
	Ground  string          `json:"-"`      // Why a found one stays, in a word or two: "not yours"; "" = nothing was found of it.
	Cause   string          `json:"-"`      // What is wrong with it, in a word or two; "" = it is not known, or nothing is.
	Sandbox sandbox.Sandbox `json:"-"`
}
