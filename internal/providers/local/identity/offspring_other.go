//go:build !linux

package identity

func (p Proc) offspring(pid int) ([]Stat, error) { return p.Descendants(pid) }
