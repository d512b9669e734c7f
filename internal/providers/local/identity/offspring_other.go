//go:build !linux

package identity

// Offspring is Descendants: there are no lists of children.
func (p Proc) Offspring(pid int) ([]Stat, error) { return p.Descendants(pid) }
