package fleet

import (
	"slices"

	"sbx/internal/providers"
)

// AbilityRow is what one profile can do.
type AbilityRow struct {
	Provider     string
	ProviderType string
	Abilities    []AbilityCell // in the order of providers.Abilities
}

// AbilityCell is one ability of one profile.
type AbilityCell struct {
	Name   string
	Has    bool
	Reason string // why not; "" where it has it
}

// Abilities is the table behind `sbx providers`, sources included; nothing is
// called for it.
func (f *Fleet) Abilities() []AbilityRow {
	rows := make([]AbilityRow, 0, len(f.members))
	for _, m := range f.members {
		row := AbilityRow{Provider: m.Provider.Name(), ProviderType: m.Provider.Type()}
		for _, a := range providers.Abilities() {
			cell := AbilityCell{Name: a.Name, Has: slices.ContainsFunc(m.all(), func(v voice) bool { return a.Has(v.of) })}
			if !cell.Has {
				cell.Reason = providers.WhyNot(m.Provider, a.Name)
			}
			row.Abilities = append(row.Abilities, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// able finds an ability of a profile; a missing one is fault.KindUnsupported
// and names the profiles that have it.
func able[A any](f *Fleet, profile, ability string) (*member, A, error) {
	var none A
	m, err := f.member(profile)
	if err != nil {
		return nil, none, err
	}
	a, ok := providers.As[A](m.Provider)
	if !ok {
		return nil, none, providers.Unsupported(m.Provider, ability, f.providers())
	}
	return m, a, nil
}

func (f *Fleet) providers() []providers.Provider {
	all := make([]providers.Provider, 0, len(f.members))
	for _, m := range f.members {
		all = append(all, m.Provider)
	}
	return all
}
