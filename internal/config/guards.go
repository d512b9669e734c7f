package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Owned says which sandboxes of a profile bulk endings may touch.
type Owned struct {
	All    bool
	Has    string            // this label must be there, with any value: the default, no file says it so
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

// Covers says whether a sandbox is protected. An id may be all that a reference may be: the whole id, a name, or the
// beginning of an id, which protects all that begin so.
func (p Protect) Covers(s sandbox.Sandbox) bool {
	for _, l := range p.Labels {
		if got, ok := s.Labels[l.Key]; ok && got == l.Value {
			return true
		}
	}
	return slices.ContainsFunc(p.IDs, func(id sandbox.Ref) bool {
		means := id.ID == s.ID || id.ID == s.Name || len(id.ID) >= sandbox.MinPrefix && strings.HasPrefix(s.ID, id.ID)
		return means && (id.Bare() || id.Provider == s.Provider)
	})
}

// collectGuards gathers production and protection, and reads the limits.
func (l *loader) collectGuards() {
	c := l.config
	c.Production = wordTexts(l.doc.production)
	c.Protect = Protect{Labels: values(l.doc.labels), IDs: values(l.doc.ids)}
	for i, p := range c.Profiles {
		c.Profiles[i].Production = slices.Contains(c.Production, p.Name)
	}
	c.Limits = l.resolvedLimits()
	for i, p := range c.Profiles {
		c.Profiles[i].MaxSandboxes = p.maxSandboxes(c.Limits)
	}
}

// Limits bound what one command may do.
type Limits struct {
	MaxDelete       int           // sandboxes per bulk ending, 20
	MaxFraction     Percent       // of a profile's complete fleet, 25%
	Concurrency     int           // requests in flight, 16
	RequestTimeout  time.Duration // one HTTP request, 10s
	MaxSandboxes    int           // that may run at once at one profile; 0 = nobody has said
	ProviderTimeout time.Duration // one provider's share of a verb without progress, 20s
}

func limitSettings() []setting {
	return inTable("limits", []setting{
		{name: "max_delete", flag: "max-delete", fallback: "20", kind: providers.OptionCount, help: "sandboxes per bulk ending"},
		{name: "max_fraction", flag: "max-fraction", fallback: "25%", kind: kindPercent, help: "of a profile's sandboxes per bulk run"},
		{name: "concurrency", flag: "concurrency", fallback: "16", kind: providers.OptionCount, help: "requests in flight"},
		{name: "request_timeout", fallback: "10s", kind: providers.OptionDuration, help: "one HTTP request"},
		{name: "provider_timeout", fallback: "20s", kind: providers.OptionDuration, help: "time without progress of one provider in a verb"},
		{name: "max_sandboxes", kind: providers.OptionCount, sample: "50", help: "running sandboxes of one profile: create and run refuse more, and it replaces a quota that the provider does not report; " +
			"a profile may have its own"},
	})
}

func (l *loader) resolvedLimits() Limits {
	read := func(name string) int64 { return l.amount("limits." + name) }
	return Limits{
		MaxDelete:       int(read("max_delete")),
		MaxFraction:     Percent(read("max_fraction")),
		Concurrency:     int(read("concurrency")),
		RequestTimeout:  time.Duration(read("request_timeout")),
		ProviderTimeout: time.Duration(read("provider_timeout")),
		MaxSandboxes:    int(read("max_sandboxes")),
	}
}
