package views

import (
	"math"
	"strconv"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// ReportColumns are those of a figure. A target has the unit of the value: for people percent,
// else as it is.
func ReportColumns() []output.Column[task.Figure] {
	type row = task.Figure
	return []output.Column[row]{
		{Name: "id", Value: func(f row) any { return f.ID }},
		{Name: "group", Level: output.Extra, Value: func(f row) any { return f.Group }},
		{Name: "title", Value: func(f row) any { return f.Title }},
		{Name: "value", Value: func(f row) any { return roundedOrNil(f.Value) }, Text: figureText},
		{Name: "unit", Level: output.Wide, Value: func(f row) any { return string(f.Unit) }},
		{Name: "target", Value: targetValue, Text: targetText},
		{Name: "verdict", Value: func(f row) any { return f.Verdict() }, Tone: figureTone},
		{Name: "samples", Value: func(f row) any { return f.Samples }},
		{Name: "why", Level: output.Wide, Value: func(f row) any { return TextOrNil(f.Why) }},
	}
}

func figureTone(f task.Figure) output.Tone {
	switch f.Verdict() {
	case sandbox.True:
		return output.Good
	case sandbox.False:
		return output.Bad
	case sandbox.Unknown:
	}
	return output.Muted
}

// roundedOrNil is a value to four digits; nil stays unknown.
func roundedOrNil(v *float64) any {
	if v == nil {
		return nil
	}
	return math.Round(*v*1e4) / 1e4
}

func figureText(f task.Figure) string {
	if f.Value == nil {
		return "-"
	}
	return unitText(*f.Value, f.Unit)
}

func unitText(v float64, unit task.Unit) string {
	switch unit {
	case task.UnitShare:
		return Decimal(v*100, 1) + "%"
	case task.UnitSeconds:
		return Decimal(v, 3) + "s"
	case task.UnitMessages, task.UnitCount:
	}
	return Decimal(v, 1)
}

func targetValue(f task.Figure) any {
	if f.Target.Sign == "" {
		return nil
	}
	return f.Target.Sign + " " + strconv.FormatFloat(f.Target.Bound, 'g', -1, 64)
}

func targetText(f task.Figure) string {
	if f.Target.Sign == "" {
		return "-"
	}
	return f.Target.Sign + " " + unitText(f.Target.Bound, f.Unit)
}
