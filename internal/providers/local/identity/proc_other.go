//go:build !linux

package identity

import (
	"time"
)

// sinceBoot is unknown: start times are not counted from the boot.
func sinceBoot() (time.Duration, bool) { return 0, false }

// pidNamespace is constant: there are no PID namespaces.
func pidNamespace() (uint64, error) { return 0, nil }

// Offspring is Descendants: there are no lists of children.
func (p Proc) Offspring(pid int) ([]Stat, error) { return p.Descendants(pid) }
