package config

import (
	"maps"
	"slices"

	"sbx/internal/sandbox"
)

// Owned says which sandboxes of a profile bulk endings may touch.
type Owned struct {
	All    bool
	Has    string            // this label must be there, with any value
	Labels map[string]string // these must be there with these values
}

// Owns says whether a sandbox with these labels is owned. The zero Owned owns
// nothing.
func (o Owned) Owns(labels map[string]string) bool {
	if o.All {
		return true
	}
	if o.Has == "" && len(o.Labels) == 0 {
		return false
	}
	if _, ok := labels[o.Has]; o.Has != "" && !ok {
		return false
	}
	for k, want := range o.Labels {
		if got, ok := labels[k]; !ok || got != want && want != AnyValue {
			return false
		}
	}
	return true
}

// String writes the rule as the file does; a label with any value stands as k=*.
func (o Owned) String() string {
	switch {
	case o.All:
		return "all"
	case o.Has != "":
		return o.Has + "=*"
	}
	pairs := make([]string, 0, len(o.Labels))
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		pairs = append(pairs, k+"="+o.Labels[k])
	}
	return joinWords(pairs)
}

// Label is one label with its value; case and dots are kept.
type Label struct{ Key, Value string }

// Protect names sandboxes that no bulk ending touches. Files add to it and
// never take away, so one key may stand with several values.
type Protect struct {
	Labels []Label
	IDs    []sandbox.Ref // without a profile: this id at any profile
}

// Covers says whether a sandbox is protected.
func (p Protect) Covers(ref sandbox.Ref, labels map[string]string) bool {
	for _, l := range p.Labels {
		if got, ok := labels[l.Key]; ok && got == l.Value {
			return true
		}
	}
	return slices.ContainsFunc(p.IDs, func(id sandbox.Ref) bool {
		return id.ID == ref.ID && (id.Bare() || id.Provider == ref.Provider)
	})
}
