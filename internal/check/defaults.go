package check

import (
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// The limits of the count of active sandboxes, as bounds of rows.
const (
	boundActive   = "stats.thresholds.active_max"
	boundNormal   = "stats.thresholds.active_normal"
	boundEscalate = "stats.thresholds.escalate_active"
)

// overDefaultFor is for how long every stored sample has exceeded the bound, where it is a default;
// 0 = for less than a day, or somebody has configured thresholds.active or the bound itself.
func (c Check) overDefaultFor(s *Subject) time.Duration {
	given, over := s.Limits.Given, s.Figures.OverFor
	switch {
	case given.Active:
	case c.Bound == boundActive:
		return over.Active
	case c.Bound == boundNormal && !given.Normal:
		return over.Normal
	case c.Bound == boundEscalate && !given.Escalate:
		return over.Escalate
	}
	return 0
}

// discountDefault is the verdict where the bound is a default that does not fit this fleet: an alert
// or a flag does not hold, and whether a target is met is not known. The limit itself stays, since a
// leak would raise it too. Growth, stuck and old sandboxes have rows of their own.
func (c Check) discountDefault(s *Subject, v sandbox.Verdict) sandbox.Verdict {
	switch {
	case c.overDefaultFor(s) == 0:
	case v == sandbox.True && c.Sign == ">":
		return sandbox.False
	case v == sandbox.False && c.Sign == "<":
		return sandbox.Unknown
	}
	return v
}

// DefaultNote says that the count exceeds a default limit and has done so for a day or more, and what
// to type; "" = that is not so.
func (c Check) DefaultNote(s *Subject) string {
	if v := compiled(c.When()).Eval(s); c.discountDefault(s, v) == v {
		return ""
	}
	return fmt.Sprintf("active %.0f, %s the default of %.0f for %s: `sbx config suggest` prints limits that fit",
		*c.Value(s), map[string]string{">": "above", "<": "not below"}[c.Sign], c.Limit(s), sandbox.FormatDuration(c.overDefaultFor(s).Truncate(time.Hour)))
}
