package views

import (
	"fmt"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// StopColumns are those of `sbx stop`.
func StopColumns() []output.Column[ops.Stopped] {
	return []output.Column[ops.Stopped]{
		{Name: "task", Value: func(s ops.Stopped) any { return s.Word }},
		{Name: "will_not_publish", Value: func(s ops.Stopped) any { return s.Forbidden }},
		{Name: "gone", Value: func(s ops.Stopped) any { return s.Gone }},
		{Name: "state", Value: func(s ops.Stopped) any { return TextOrNil(string(s.Task.State)) }},
		{Name: "forbidden_seconds", Value: func(s ops.Stopped) any { return output.Seconds(s.ForbiddenAfter) }},
		{Name: "gone_seconds", Value: func(s ops.Stopped) any { return output.Seconds(s.GoneAfter) }},
		{Name: "reason", Value: func(s ops.Stopped) any {
			if s.Err != nil {
				return s.Err.Error()
			}
			return nil
		}},
	}
}

// StopLine is the second line of a stop; the first was said when it was true.
func StopLine(s ops.Stopped) string {
	switch {
	case s.Gone && s.WasOver:
		return s.Word + ": had ended before (" + string(s.Task.State) + "), nothing of it is left"
	case s.Gone:
		return fmt.Sprintf("%s: gone (%.1fs)", s.Word, s.GoneAfter.Seconds())
	case s.Forbidden:
		return s.Word + ": not seen to be gone"
	}
	return s.Word + ": not stopped"
}
