package identity

// Offspring is Descendants for whom the kernel keeps lists of children, at the
// cost of the tree instead of the machine. A list that is read while a child
// ends may lack a sibling of it: enough for a look that is taken again, no proof
// that nobody is left. Where there are no lists it is Descendants.
func (p Proc) Offspring(pid int) ([]Stat, error) { return p.offspring(pid) }
