package wirekit

import (
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// CheckLimits refuses a sandbox that has not got the limits of its spec, where they must hold: an engine may drop one
// without a word, and an admission webhook may change it. got are those that the record shows after the create.
func CheckLimits(spec sandbox.Spec, got sandbox.Limits) error {
	if !spec.RequireHardLimit {
		return nil
	}
	var lacks string
	switch {
	case spec.MemoryBytes > 0 && (got.MemoryBytes == nil || *got.MemoryBytes > spec.MemoryBytes):
		lacks = "memory"
	case spec.CPU > 0 && (got.CPU == nil || *got.CPU > spec.CPU*1.01+0.01): // shares are rounded
		lacks = "cores"
	case spec.PIDs > 0 && (got.PIDs == nil || *got.PIDs > spec.PIDs):
		lacks = "processes"
	default:
		return nil
	}
	return NoHardLimit("its record shows no limit of " + lacks + " as it was asked for")
}

// NoHardLimit is the refusal of a sandbox whose limits are not enforced.
func NoHardLimit(why string) error {
	return fault.New(fault.KindRefused, "its limits are not enforced: %s", why).WithHint("leave out --require-hard-limit, or use one whose kernel and user have these control groups")
}
