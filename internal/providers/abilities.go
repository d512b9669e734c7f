package providers

import (
	"slices"
	"strings"

	"sbx/internal/fault"
)

// Ability is one ability of the contract.
type Ability struct {
	Name string // as `sbx providers` shows it
	Has  func(Named) bool
}

// Abilities lists the abilities for `sbx providers` and for hints of fault.KindUnsupported.
func Abilities() []Ability {
	return []Ability{
		{"logs", hasAbility[LogReader]},
		{"usage", hasAbility[UsageReader]},
		{"history", hasAbility[UsageHistoryReader]},
		{"processes", hasAbility[ProcessLister]},
		{"stats", hasAbility[StatsReader]},
		{"create", hasAbility[Launcher]},
		{"admit", hasAbility[Admitter]},
		{"exec", hasAbility[Commander]},
		{"probe", hasAbility[Prober]},
		{"events", hasAbility[EventReader]},
		{"exit", hasAbility[ExitReader]},
		{"activity", hasAbility[ActivityReader]},
		{"quota", hasAbility[QuotaReader]},
		{"records", hasAbility[Recorder]},
		{"verify", hasAbility[Verifier]},
		{"cleanup", hasAbility[ProviderCleaner]},
		{"sweep", hasAbility[Sweeper]},
		{"doctor", hasAbility[Checker]},
	}
}

func hasAbility[T any](n Named) bool {
	_, ok := As[T](n)
	return ok
}

// WhyNot is the reason why p lacks an ability.
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

// Unsupported is the error for an ability that p lacks; the hint names the other providers that have
// it.
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
