package kubernetes

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
