package views

import (
	"errors"

	"sbx/internal/fault"
)

// UnknownReason says in one line why a part of an observation has no answer.
func UnknownReason(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Err != nil {
		text = f.Err.Error()
	}
	if fault.KindOf(err) == fault.KindUnsupported {
		return "cannot be known: " + text
	}
	return "could not be read: " + text
}
