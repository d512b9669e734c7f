package views

import (
	"math"
	"strconv"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// UsageRow is one line of top: what a sandbox uses, and what its samples say
// together.
type UsageRow ops.SandboxUsage

// UsageColumns are U of CLI.md, in its order.
func UsageColumns() []output.Column[UsageRow] {
	type row = UsageRow
	return append([]output.Column[row]{
		{Name: "ref", Value: func(r row) any { return r.Ref.String() }},
		{Name: "at", Level: output.Extra, Value: func(r row) any { return output.Time(r.Last.At) }},
		{Name: "cpu_percent", Head: "CPU", Value: func(r row) any { return Tenth(r.Trend.CPUPercent) }, Text: row.CPUText, Tone: row.CPUTone},
		{Name: "memory_mb", Head: "MEMORY", Value: func(r row) any { return output.MiB(r.Trend.MemoryBytes) }, Text: row.MemoryText, Tone: row.MemoryTone},
		{Name: "memory_limit_mb", Head: "LIMIT", Level: output.Wide, Value: func(r row) any { return output.MiB(r.Trend.MemoryLimitBytes) }},
		{Name: "memory_slope_mb_per_min", Head: "MIB/MIN", Value: func(r row) any { return Tenth(r.Trend.MemorySlope) }, Text: row.SlopeText},
		{Name: "operations", Head: "OPS", Value: func(r row) any { return r.Last.Operations }, Text: row.OperationsText},
		{Name: "duration_seconds", Head: "RAN", Level: output.Wide, Value: func(r row) any {
			if r.Last.Duration == nil {
				return nil
			}
			return output.Seconds(*r.Last.Duration)
		}},
		{Name: "pids", Level: output.Wide, Value: func(r row) any { return r.Last.PIDs }},
		{Name: "oom_kills", Head: "OOM", Level: output.Wide, Value: func(r row) any { return r.Last.OOMKills }},
		{Name: "pattern", Value: func(r row) any { return r.Verdict.Pattern }, Tone: row.PatternTone},
		{Name: "likely_cause", Head: "LIKELY", Value: func(r row) any { return r.Verdict.Cause }},
		{Name: "source", Level: output.Wide, Value: func(r row) any { return r.Trend.Source }},
		{Name: "stuck", Level: output.Wide, Value: func(r row) any { return r.Verdict.Stuck }},
	}, verdictColumns(output.Extra, func(r row) triage.Verdict { return r.Verdict })...)
}

// CPUText is the use of the processor.
func (r UsageRow) CPUText() string {
	if r.Trend.CPUPercent == nil {
		return "-"
	}
	return Decimal(*r.Trend.CPUPercent, 0) + "%"
}

// CPUTone is its tone.
func (r UsageRow) CPUTone() output.Tone {
	if cpu := r.Trend.CPUPercent; cpu != nil && *cpu >= r.Limits.CPUBusy {
		return output.Bad
	}
	return output.Plain
}

// MemoryText puts the limit beside the figure: "120 of 256".
func (r UsageRow) MemoryText() string {
	used := MebibytesText(r.Trend.MemoryBytes)
	if r.Trend.MemoryLimitBytes == nil || r.Trend.MemoryBytes == nil {
		return used
	}
	return used + " of " + MebibytesText(r.Trend.MemoryLimitBytes)
}

// MemoryTone is the tone of the use of memory.
func (r UsageRow) MemoryTone() output.Tone {
	used, limit := r.Trend.MemoryBytes, r.Trend.MemoryLimitBytes
	if used != nil && limit != nil && *limit > 0 && float64(*used) >= r.Limits.MemoryNear*float64(*limit) {
		return output.Bad
	}
	return output.Plain
}

// SlopeText is the trend of memory.
func (r UsageRow) SlopeText() string {
	switch {
	case r.Trend.MemorySlope == nil && r.Trend.TooShort && r.Trend.Samples > 1:
		return "short"
	case r.Trend.MemorySlope == nil:
		return "-"
	}
	slope := math.Round(*r.Trend.MemorySlope)
	if slope > 0 {
		return "+" + Decimal(slope, 0)
	}
	return Decimal(slope, 0)
}

// OperationsText rounds a large count: "150k".
func (r UsageRow) OperationsText() string {
	if r.Last.Operations == nil {
		return "-"
	}
	switch n := *r.Last.Operations; {
	case n >= 10_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 10_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	default:
		return strconv.FormatInt(n, 10)
	}
}

// PatternTone is the tone of the pattern.
func (r UsageRow) PatternTone() output.Tone {
	switch r.Verdict.Pattern {
	case triage.PatternBusyLoop, triage.PatternLeak:
		return output.Bad
	case triage.PatternHungIO, triage.PatternBusy:
		return output.Warn
	case triage.PatternSteady:
		return output.Good
	case triage.PatternIdle, triage.PatternUnknown:
	}
	return output.Plain
}

// MebibytesText writes a count of bytes in whole MiB, "-" when it is not known.
func MebibytesText(bytes *int64) string {
	if bytes == nil {
		return "-"
	}
	return Decimal(float64(*bytes)/sandbox.MiB, 0)
}

// Decimal writes a number with at most so many digits behind the point.
func Decimal(v float64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*scale)/scale+0, 'f', -1, 64)
}

// Tenth rounds a figure for machines; nil stays unknown.
func Tenth(v *float64) any {
	if v == nil {
		return nil
	}
	return math.Round(*v*10)/10 + 0 // + 0 turns -0 into 0
}

// Object is an item as one object, with every column as a key.
func Object[T any](columns []output.Column[T], item T) output.Fields {
	object := make(output.Fields, len(columns))
	for i, c := range columns {
		object[i] = output.Field{Key: c.Name, Value: c.Value(item)}
	}
	return object
}

// ShowUsage shows one look at what sandboxes use. Program is what sbx is called.
func ShowUsage(p *output.Printer, schema string, r *ops.TopResult, program string) error {
	list, err := output.NewList(p, output.ListSpec[UsageRow]{
		Schema: schema, Columns: UsageColumns(), Empty: "no sandbox runs; `" + program + " ls` shows what there is",
	})
	if err != nil {
		return err
	}
	for _, err := range r.Errors {
		list.Fail(err)
	}
	for _, u := range r.Usage {
		if err := list.Add(UsageRow(u)); err != nil {
			return err
		}
	}
	return list.Close()
}
