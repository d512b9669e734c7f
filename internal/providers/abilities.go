package providers

import (
	"slices"
	"strings"

	"sbx/internal/fault"
)

// Ability names one thing that a provider may be able to do.
type Ability struct {
	Name string // as `sbx providers` shows it
	Has  func(Named) bool
}

// Abilities is the list behind `sbx providers` and every "unsupported" hint.
func Abilities() []Ability {
	return []Ability{
		{"logs", has[LogReader]},
		{"usage", has[UsageReader]},
		{"history", has[UsageHistoryReader]},
		{"processes", has[ProcessLister]},
		{"stats", has[StatsReader]},
		{"create", has[Launcher]},
		{"admit", has[Admitter]},
		{"exec", has[Commander]},
		{"probe", has[Prober]},
		{"events", has[EventReader]},
		{"exit", has[ExitReader]},
		{"activity", has[ActivityReader]},
		{"quota", has[QuotaReader]},
		{"records", has[Recorder]},
		{"verify", has[Verifier]},
		{"cleanup", has[ProviderCleaner]},
		{"sweep", has[Sweeper]},
		{"doctor", has[Checker]},
	}
}

func has[T any](n Named) bool {
	_, ok := As[T](n)
	return ok
}

// WhyNot says why p lacks an ability.
func WhyNot(p Named, ability string) string {
	if u, ok := p.(*Unopened); ok {
		return "it could not be opened: " + u.why.Error()
	}
	text := "a provider of type " + p.Type() + " has no " + ability
	if e, ok := As[Explainer](p); ok {
		if why := e.WhyNot(ability); why != "" {
			text += ": " + why
		}
	}
	return text
}

// Unsupported is the error for an ability that p lacks; the hint names those of
// others that have it.
func Unsupported(p Provider, ability string, others []Provider) error {
	if u, ok := p.(*Unopened); ok {
		return u.why
	}
	err := fault.New(fault.KindUnsupported, "%s", WhyNot(p, ability)).At(p.Name(), "")
	i := slices.IndexFunc(Abilities(), func(a Ability) bool { return a.Name == ability })
	if i < 0 {
		return err
	}
	var can []string
	for _, o := range others {
		if Abilities()[i].Has(o) {
			can = append(can, o.Name())
		}
	}
	if len(can) == 0 {
		return err.WithHint("no configured provider has it")
	}
	return err.WithHint("these configured providers have it: %s", strings.Join(can, ", "))
}
