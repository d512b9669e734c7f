package views

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// ExtendItem is what an extension has reached for one sandbox.
type ExtendItem struct {
	Ref      string          `json:"ref" table:""`                    // PROFILE/ID.
	Outcome  sandbox.Outcome `json:"outcome" table:""`                // verified: another read has shown a later end; accepted: it has not; skipped: not sent.
	Before   *time.Time      `json:"before" table:""`                 // When it would have ended; null where it has no end, or that is not known.
	Until    *time.Time      `json:"until" table:""`                  // When it ends, by the last read; null where that is not known.
	Left     *float64        `json:"remaining_seconds" table:"LEFT"`  // The time until then; null where that is not known.
	Asked    time.Time       `json:"asked" table:",wide"`             // The end that was asked for.
	IdleStop *float64        `json:"idle_stop_seconds" table:",wide"` // It also stops after this time without activity; null: it does not, or that is not known.
	Reason   *string         `json:"reason" table:""`                 // Why it failed, or was not as asked.
}

// ExtendColumns are the columns of an ExtendItem.
func ExtendColumns() []output.Column[end.ExtendResult] {
	return output.Columns(extendItem,
		output.Column[end.ExtendResult]{Name: "remaining_seconds", Text: leftText},
	)
}

func extendItem(r end.ExtendResult) ExtendItem {
	item := ExtendItem{
		Ref: r.Ref.String(), Outcome: r.Outcome, Before: output.Time(r.Before), Until: output.Time(r.Until), Asked: r.Asked.UTC(), Reason: orNil(r.Reason),
	}
	if !r.Until.IsZero() {
		item.Left = new(output.Seconds(r.Left))
	}
	if r.IdleStop > 0 {
		item.IdleStop = new(output.Seconds(r.IdleStop))
	}
	return item
}

func leftText(r end.ExtendResult) string {
	if r.Until.IsZero() {
		return ""
	}
	return sandbox.FormatDuration(r.Left.Truncate(time.Second))
}

// ExtendLine is the result of one sandbox for people; the error of a failed one is beside it.
func ExtendLine(r end.ExtendResult) string {
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	text := r.Ref.String() + ": "
	switch {
	case r.Err == nil, fault.KindOf(r.Err) == fault.KindPartial:
		text += "its end: " + stamp(r.Before) + " -> " + stamp(r.Until) + ", " + leftText(r) + " left"
	case r.Until.IsZero():
		return text + "not extended, or not seen to be"
	default:
		text += "not extended: its end is " + stamp(r.Until) + ", " + leftText(r) + " left"
	}
	if r.IdleStop > 0 && r.IdleStop < r.Left {
		text += "; it still stops after " + sandbox.FormatDuration(r.IdleStop) + " without activity"
	}
	return text
}

// ExtendPlanPage shows people what would be extended.
func ExtendPlanPage(s *output.Sheet, plan *ops.Act) {
	s.Text(planTitle)
	guardTable(s, plan.Guards)
	ActPage(s, plan, plan.At)
}
