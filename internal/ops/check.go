package ops

import (
	"cmp"
	"errors"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// Check is one question that a check asks, with its answer.
type Check struct {
	fleet.ProviderCheck
	Minor bool // wrong, but no sandbox is out of reach: a warning to a monitor
}

// ToolCheck is a check of sbx itself.
func ToolCheck(check string, verdict sandbox.Verdict, message, hint string) Check {
	c := Check{}
	c.Check.Check, c.Verdict, c.Message, c.Hint = check, verdict, message, hint
	return c
}

// AsNote marks a check as information that needs no repair.
func (c Check) AsNote() Check {
	c.Info = true
	return c
}

// AsWarning marks a check as one whose failure keeps no sandbox out of reach.
func (c Check) AsWarning() Check {
	c.Minor = true
	return c
}

// CheckStatus is what a check comes to. A note may have any verdict and counts as nothing.
type CheckStatus string

// The statuses, in the words that people see.
const (
	CheckOK      CheckStatus = "ok"
	CheckNote    CheckStatus = "note"
	CheckUnknown CheckStatus = "unknown"
	CheckWarning CheckStatus = "warning"
	CheckProblem CheckStatus = "problem"
)

// Status is what the check comes to.
func (c Check) Status() CheckStatus {
	switch {
	case c.Verdict == sandbox.True:
		return CheckOK
	case c.Info:
		return CheckNote
	case c.Verdict == sandbox.Unknown:
		return CheckUnknown
	case c.Minor:
		return CheckWarning
	}
	return CheckProblem
}

// Err is the check's error; nil if all is well or it only informs. A check without an answer
// gets a kind that may be retried.
func (c Check) Err() error {
	var kind fault.Kind
	switch c.Status() {
	case CheckProblem, CheckWarning:
		kind = fault.KindFound
	case CheckUnknown:
		kind = fault.KindUnavailable
	case CheckOK, CheckNote:
		return nil
	}
	err := fault.New(kind, "%s: %s", c.Check.Check, c.Message).At(c.Provider, "")
	err.Hint = c.Hint
	return err
}

// urgency is the place of a check among those that want a person: what keeps sbx itself from
// working, what keeps a provider out of reach, what has not answered, what is near a limit, and
// what no sandbox depends on.
func (c Check) urgency() int {
	switch {
	case c.Status() == CheckProblem && c.Provider == "":
		return 0
	case c.Status() == CheckProblem && c.Check.Check != CheckQuota:
		return 1
	case c.Status() == CheckUnknown:
		return 2
	case c.Status() == CheckProblem:
		return 3
	}
	return 4
}

// CompareCheckErrors orders the errors of checks by what to do first.
func CompareCheckErrors(checks []Check) func(a, b error) int {
	place := map[string]int{}
	for _, c := range checks {
		if err := c.Err(); err != nil {
			place[err.Error()] = c.urgency()
		}
	}
	return func(a, b error) int { return cmp.Compare(place[a.Error()], place[b.Error()]) }
}

// CheckVerdict decides the exit code: what was found before what could not be
// asked.
func CheckVerdict(checks []Check) error {
	var found, unknown []error
	for _, c := range checks {
		switch err := c.Err(); fault.KindOf(err) {
		case fault.KindNone:
		case fault.KindFound:
			found = append(found, err)
		default:
			unknown = append(unknown, err)
		}
	}
	if len(found) > 0 {
		return errors.Join(found...)
	}
	return errors.Join(unknown...)
}

// VerbVerify names the verb in messages.
const VerbVerify = "verify"

// FormatFigure writes a figure of verify: a share in percent, all else as a whole number.
func FormatFigure(v float64, unit task.Unit) string {
	if unit == task.UnitShare {
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f", v)
}
