package kubernetes

import "sbx/internal/providers"

// OpenWithAccount opens a profile, with the account of a pod in this folder.
func OpenWithAccount(p providers.Profile, d providers.Deps, account string) (providers.Provider, error) {
	return open(p, d, account)
}

// Right exports what a verb of sbx needs of the API.
type Right struct{ Verb, Group, Resource, VerbOfSbx string }

// Rights exports needs.
func Rights() []Right {
	var all []Right
	for _, n := range needs() {
		all = append(all, Right{n.verb, n.group, n.resource, n.verbOfSbx})
	}
	return all
}
