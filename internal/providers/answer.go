package providers

import (
	"slices"

	"sbx/internal/fault"
)

// About holds what an answer calls its object against what was asked for: an answer
// that names nothing, or something else, says nothing of it, and nothing may be done
// to what it names. fault.KindUnavailable.
func About(profile, op, asked string, names ...string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	switch {
	case slices.Contains(names, asked) && asked != "":
		return nil
	case len(names) == 0:
		return fault.New(fault.KindUnavailable, "the answer names no sandbox").At(profile, op)
	}
	return OtherSandbox(profile, op, asked, names[0])
}
