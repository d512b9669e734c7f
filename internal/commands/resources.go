package commands

import (
	"math"
	"slices"
	"strconv"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// usageRow is one line of top: what a sandbox uses, and what its samples say
// together.
type usageRow struct {
	ref     sandbox.Ref
	last    sandbox.Usage
	trend   triage.Trend
	limits  triage.Thresholds
	verdict triage.Verdict
}

// measured reads the samples of one sandbox; there is one at least.
func measured(ref sandbox.Ref, samples []sandbox.Usage, t triage.Thresholds, verdict triage.Verdict) usageRow {
	last := slices.MaxFunc(samples, func(a, b sandbox.Usage) int { return a.At.Compare(b.At) })
	return usageRow{ref: ref, last: last, trend: triage.TrendOf(samples, t), limits: t, verdict: verdict}
}

// usageColumns are U of CLI.md, in its order.
func usageColumns() []output.Column[usageRow] {
	type row = usageRow
	return append([]output.Column[row]{
		{Name: "ref", Value: func(r row) any { return r.ref.String() }},
		{Name: "at", Level: output.Extra, Value: func(r row) any { return output.Time(r.last.At) }},
		{Name: "cpu_percent", Head: "CPU", Value: func(r row) any { return tenth(r.trend.CPUPercent) }, Text: row.cpuText, Tone: row.cpuTone},
		{Name: "memory_mb", Head: "MEMORY", Value: func(r row) any { return output.MiB(r.trend.MemoryBytes) }, Text: row.memoryText, Tone: row.memoryTone},
		{Name: "memory_limit_mb", Head: "LIMIT", Level: output.Wide, Value: func(r row) any { return output.MiB(r.trend.MemoryLimitBytes) }},
		{Name: "memory_slope_mb_per_min", Head: "MIB/MIN", Value: func(r row) any { return tenth(r.trend.MemorySlope) }, Text: row.slopeText},
		{Name: "operations", Head: "OPS", Value: func(r row) any { return r.last.Operations }, Text: row.operationsText},
		{Name: "duration_seconds", Head: "RAN", Level: output.Wide, Value: func(r row) any {
			if r.last.Duration == nil {
				return nil
			}
			return output.Seconds(*r.last.Duration)
		}},
		{Name: "pids", Level: output.Wide, Value: func(r row) any { return r.last.PIDs }},
		{Name: "oom_kills", Head: "OOM", Level: output.Wide, Value: func(r row) any { return r.last.OOMKills }},
		{Name: "pattern", Value: func(r row) any { return r.verdict.Pattern }, Tone: row.patternTone},
		{Name: "likely_cause", Head: "LIKELY", Value: func(r row) any { return r.verdict.Cause }},
		{Name: "source", Level: output.Wide, Value: func(r row) any { return r.trend.Source }},
		{Name: "stuck", Level: output.Wide, Value: func(r row) any { return r.verdict.Stuck }},
	}, verdictColumns(output.Extra, func(r row) triage.Verdict { return r.verdict })...)
}

func (r usageRow) cpuText() string {
	if r.trend.CPUPercent == nil {
		return "-"
	}
	return decimal(*r.trend.CPUPercent, 0) + "%"
}

func (r usageRow) cpuTone() output.Tone {
	if cpu := r.trend.CPUPercent; cpu != nil && *cpu >= r.limits.CPUBusy {
		return output.Bad
	}
	return output.Plain
}

// memoryText puts the limit beside the figure: "120 of 256".
func (r usageRow) memoryText() string {
	used := mebibytes(r.trend.MemoryBytes)
	if r.trend.MemoryLimitBytes == nil || r.trend.MemoryBytes == nil {
		return used
	}
	return used + " of " + mebibytes(r.trend.MemoryLimitBytes)
}

func (r usageRow) memoryTone() output.Tone {
	used, limit := r.trend.MemoryBytes, r.trend.MemoryLimitBytes
	if used != nil && limit != nil && *limit > 0 && float64(*used) >= r.limits.MemoryNear*float64(*limit) {
		return output.Bad
	}
	return output.Plain
}

func (r usageRow) slopeText() string {
	switch {
	case r.trend.MemorySlope == nil && r.trend.TooShort && r.trend.Samples > 1:
		return "short"
	case r.trend.MemorySlope == nil:
		return "-"
	}
	slope := math.Round(*r.trend.MemorySlope)
	if slope > 0 {
		return "+" + decimal(slope, 0)
	}
	return decimal(slope, 0)
}

// operationsText writes a count that nobody reads to the last digit: "150k".
func (r usageRow) operationsText() string {
	if r.last.Operations == nil {
		return "-"
	}
	switch n := *r.last.Operations; {
	case n >= 10_000_000:
		return strconv.FormatInt(n/1_000_000, 10) + "M"
	case n >= 10_000:
		return strconv.FormatInt(n/1000, 10) + "k"
	default:
		return strconv.FormatInt(n, 10)
	}
}

func (r usageRow) patternTone() output.Tone {
	switch r.verdict.Pattern {
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

// mebibytes writes a count of bytes in whole MiB, "-" when it is not known.
func mebibytes(bytes *int64) string {
	if bytes == nil {
		return "-"
	}
	return decimal(float64(*bytes)/sandbox.MiB, 0)
}

// decimal writes a number with at most so many digits behind the point.
func decimal(v float64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*scale)/scale+0, 'f', -1, 64)
}

// tenth rounds a figure for machines; nil stays unknown.
func tenth(v *float64) any {
	if v == nil {
		return nil
	}
	return math.Round(*v*10)/10 + 0 // + 0 turns -0 into 0
}

// fieldsOf is an item as one object, with every column as a key.
func fieldsOf[T any](columns []output.Column[T], item T) output.Fields {
	object := make(output.Fields, len(columns))
	for i, c := range columns {
		object[i] = output.Field{Key: c.Name, Value: c.Value(item)}
	}
	return object
}
