package selector

import (
	"time"

	"sbx/internal/sandbox"
)

// Selector is a compiled choice of sandboxes. Filters of different kinds must
// all hold; several states, or several values of one label, are alternatives.
// The zero Selector matches everything but what HideEndedAfter hides. Build it
// with Compile: a Selector made by hand skips the checks.
type Selector struct {
	States      []sandbox.State `json:"states,omitempty"`
	OlderThan   time.Duration   `json:"older_than_ns,omitempty"`   // strictly older; 0 = no such filter
	YoungerThan time.Duration   `json:"younger_than_ns,omitempty"` // strictly younger; 0 = no such filter
	Before      time.Time       `json:"before,omitzero"`           // came to be before it; zero = no such filter
	After       time.Time       `json:"after,omitzero"`            // came to be after it; zero = no such filter
	Labels      []Label         `json:"labels,omitempty"`
	Name        string          `json:"name,omitempty"`       // glob, see Options.Name; "" = no such filter
	Task        string          `json:"task,omitempty"`       // exact task id; "" = no such filter
	AgentType   string          `json:"agent_type,omitempty"` // exact; "" = no such filter
	Owner       string          `json:"owner,omitempty"`      // exact, as labels tell people; "" = no such filter
	Stuck       bool            `json:"stuck,omitempty"`      // only what the stuck rule holds to be stuck
	All         bool            `json:"all,omitempty"`        // also sandboxes that ended long ago, see Facts.HidesEnded
	Limit       int             `json:"limit,omitempty"`      // at most so many; 0 = no limit
	Sort        Order           `json:"sort,omitzero"`
}

// Label asks for one label of a sandbox.
type Label struct {
	Key    string   `json:"key"`
	Values []string `json:"values,omitempty"` // alternatives; none = the key must be present, with any value
}

// HideEndedAfter is how long ended sandboxes of a provider that hides them stay visible
// without All.
const HideEndedAfter = time.Hour

// Facts is what a judgement needs beside the sandbox itself.
type Facts struct {
	Now time.Time
	// Stuck is the stuck rule, with the reason in words. Nil makes every
	// answer of the stuck filter unknown.
	Stuck func(sandbox.Sandbox) (sandbox.Verdict, string)
	// HidesEnded says that the provider of a sandbox lists ended ones without an end, so
	// that All alone shows the older ones. Nil = none does: hiding needs proof.
	HidesEnded func(sandbox.Sandbox) bool
}

// Empty says that the selector names no sandboxes by itself: it has no filter.
// All, Limit and Sort are no filters.
func (s Selector) Empty() bool {
	return len(s.States) == 0 && s.OlderThan == 0 && s.YoungerThan == 0 && s.Before.IsZero() && s.After.IsZero() && len(s.Labels) == 0 &&
		s.Name == "" && s.Task == "" && s.AgentType == "" && s.Owner == "" && !s.Stuck
}

// ExactLabels gives the labels that ask for exactly one value, for providers
// that can narrow a listing at the source.
func (s Selector) ExactLabels() map[string]string {
	exact := map[string]string{}
	for _, l := range s.Labels {
		if len(l.Values) == 1 {
			exact[l.Key] = l.Values[0]
		}
	}
	return exact
}
