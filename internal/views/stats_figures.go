package views

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// StatsRow is the figures of one provider, or of all together, beside their limits.
type StatsRow ops.Figures

// StatsColumns are the items of CLI.md: the figures, and whose they are.
func StatsColumns() []output.Column[StatsRow] {
	columns := append([]output.Column[StatsRow]{
		{Name: "provider", Value: func(r StatsRow) any { return r.Provider }},
		{Name: "provider_type", Level: output.Wide, Head: "TYPE", Value: func(r StatsRow) any { return r.ProviderType }},
	}, FigureColumns()...)
	return append(columns, output.Column[StatsRow]{Name: "flags", Level: output.Extra, Value: func(r StatsRow) any { return flagList(r.Flags) }})
}

// flagList are the answers to questions of the runbook as data.
func flagList(flags []triage.Flag) any {
	list := make([]any, len(flags))
	for i, f := range flags {
		list[i] = output.Fields{
			{Key: "id", Value: f.ID},
			{Key: "severity", Value: f.Severity},
			{Key: "verdict", Value: f.Verdict},
			{Key: "say", Value: f.Say},
			{Key: "evidence", Value: EvidenceList(f.Evidence)},
		}
	}
	return list
}

// Raised are the flags that are true, a line each: "prod: R14 cleanup fails (cleanup
// failures 2)". What the table shows in a column of its own is left out.
func (r StatsRow) Raised() []string {
	var lines []string
	for _, f := range r.Flags {
		if f.Verdict == sandbox.True && f.ID != "R4" && f.ID != "R12" {
			lines = append(lines, ClaimWithEvidence(r.Provider+": "+f.ID+" "+f.Say, f.Evidence))
		}
	}
	return lines
}

// FigureColumns are the figures themselves, with their limits beside them for
// people.
func FigureColumns() []output.Column[StatsRow] {
	type row = StatsRow
	return []output.Column[row]{
		{Name: "active", Value: func(r row) any { return r.Counts.Active }, Text: row.ActiveText, Tone: row.ActiveTone},
		{Name: "provisioning", Head: "PROV", Value: func(r row) any { return r.Counts.Provisioning }},
		{Name: "terminating", Head: "TERM", Value: func(r row) any { return r.Counts.Terminating }},
		{Name: "total_created", Head: "CREATED", Level: output.Wide, Value: func(r row) any { return r.Counts.TotalCreated }},
		{Name: "total_destroyed", Head: "DESTROYED", Level: output.Wide, Value: func(r row) any { return r.Counts.TotalDestroyed }},
		{Name: "age_min_seconds", Head: "MIN", Level: output.Wide, Value: func(r row) any { return r.Age(0) }},
		{Name: "age_p50_seconds", Head: "P50", Level: output.Wide, Value: func(r row) any { return r.Age(50) }},
		{Name: "age_p95_seconds", Head: "P95", Value: func(r row) any { return r.Age(95) }},
		{Name: "age_max_seconds", Head: "MAX", Value: func(r row) any { return r.Age(100) }, Tone: row.AgeTone},
		{Name: "stuck", Value: func(r row) any { return r.Stuck }, Text: row.StuckText, Tone: row.StuckTone},
		{Name: "unjudged", Level: output.Wide, Value: func(r row) any { return r.Unjudged }, Tone: row.unjudgedTone},
		{Name: "timeout_rate", Head: "TIMEOUTS", Value: func(r row) any { return r.timeoutRate() }, Text: row.RateText, Tone: row.RateTone},
		{Name: "thresholds", Level: output.Extra, Value: func(r row) any { return thresholdFields(r.Limits) }},
	}
}

func thresholdFields(t triage.Thresholds) output.Fields {
	return output.Fields{
		{Key: "active_max", Value: t.ActiveMax},
		{Key: "stuck_age_seconds", Value: output.Seconds(t.StuckAge)},
		{Key: "watch_age_seconds", Value: output.Seconds(t.WatchAge)},
		{Key: "timeout_rate_high", Value: t.TimeoutRateHigh},
		{Key: "timeout_rate_good", Value: t.TimeoutRateGood},
	}
}

// Age is a percentile of the ages of running sandboxes, by nearest rank, so
// that it is the age of a real one; nil where there is none.
func (r StatsRow) Age(percent int) any {
	if len(r.Ages) == 0 {
		return nil
	}
	ages := slices.Sorted(slices.Values(r.Ages))
	rank := (percent*len(ages) + 99) / 100
	return output.Seconds(ages[max(rank, 1)-1])
}

// timeoutRate is the share of ended sandboxes that a time limit ended, to four digits.
func (r StatsRow) timeoutRate() any {
	rate := r.Counts.TimeoutRate()
	if rate == nil {
		return nil
	}
	return math.Round(*rate*1e4) / 1e4
}

// overActiveLimit says that more are active than may be (strictly; R4).
func (r StatsRow) overActiveLimit() bool {
	return r.Counts.Active != nil && *r.Counts.Active > int64(r.Limits.ActiveMax)
}

// ActiveText is the count of running sandboxes.
func (r StatsRow) ActiveText() string {
	if r.Counts.Active == nil {
		return "-"
	}
	text := strconv.FormatInt(*r.Counts.Active, 10) + " of " + strconv.Itoa(r.Limits.ActiveMax)
	if r.overActiveLimit() {
		return text + " OVER"
	}
	return text
}

// ActiveTone is its tone.
func (r StatsRow) ActiveTone() output.Tone {
	if r.overActiveLimit() {
		return output.Bad
	}
	return output.Plain
}

// AgeTone is the tone of the ages.
func (r StatsRow) AgeTone() output.Tone {
	if len(r.Ages) > 0 && slices.Max(r.Ages) > r.Limits.StuckAge {
		return output.Warn
	}
	return output.Plain
}

// StuckText is the count of stuck sandboxes.
func (r StatsRow) StuckText() string {
	if r.Stuck == nil {
		return "-"
	}
	return strconv.FormatInt(*r.Stuck, 10) + " over " + sandbox.FormatDuration(r.Limits.StuckAge)
}

// StuckTone is its tone.
func (r StatsRow) StuckTone() output.Tone {
	if r.Stuck != nil && *r.Stuck > 0 {
		return output.Bad
	}
	return output.Plain
}

func (r StatsRow) unjudgedTone() output.Tone {
	if r.Unjudged != nil && *r.Unjudged > 0 {
		return output.Warn
	}
	return output.Plain
}

// RateText grades the rate: between healthy and alert it is to be watched
// (R3, R128).
func (r StatsRow) RateText() string {
	rate := r.Counts.TimeoutRate()
	if rate == nil {
		return "-"
	}
	text := Decimal(*rate*100, 1) + "% of " + Decimal(r.Limits.TimeoutRateHigh*100, 1) + "%"
	switch {
	case *rate > r.Limits.TimeoutRateHigh:
		return text + " OVER"
	case *rate >= r.Limits.TimeoutRateGood:
		return text + " watch"
	}
	return text
}

// RateTone is the tone of the time-out rate.
func (r StatsRow) RateTone() output.Tone {
	rate := r.Counts.TimeoutRate()
	switch {
	case rate == nil:
		return output.Plain
	case *rate > r.Limits.TimeoutRateHigh:
		return output.Bad
	case *rate >= r.Limits.TimeoutRateGood:
		return output.Warn
	}
	return output.Good
}

// ShowStats shows the figures of every provider, and in documents those of all together.
// Program is what sbx is called.
func ShowStats(p *output.Printer, schema string, r *ops.StatsResult, program string) error {
	list, err := output.NewList(p, output.ListSpec[StatsRow]{Schema: schema, Columns: StatsColumns()})
	if err != nil {
		return err
	}
	for _, err := range r.Errors {
		list.Fail(err)
	}
	remarks := []string{r.Census.Remark(program + " stats --look")}
	for _, f := range r.Providers {
		remarks = append(remarks, StatsRow(f).Raised()...)
	}
	list.Remark(strings.Join(slices.DeleteFunc(remarks, func(r string) bool { return r == "" }), "; "))
	list.Set("total", Object(FigureColumns(), StatsRow(r.Total)))
	for _, f := range r.Providers {
		if err := list.Add(StatsRow(f)); err != nil {
			return err
		}
	}
	return list.Close()
}

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
