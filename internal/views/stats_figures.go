package views

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/check"
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
			lines = append(lines, ClaimWithEvidence(r.Provider+": "+f.Say, f.Evidence))
		}
	}
	return lines
}

// FigureColumns are the figures themselves, with their limits beside them for
// people.
func FigureColumns() []output.Column[StatsRow] {
	type row = StatsRow
	return []output.Column[row]{
		{Name: "active", Head: "ACTIVE OF TARGET", Value: func(r row) any { return r.Counts.Active }, Text: row.ActiveText, Tone: row.ActiveTone},
		{Name: "provisioning", Head: "PROV", Value: func(r row) any { return r.Counts.Provisioning }},
		{Name: "terminating", Head: "TERM", Value: func(r row) any { return r.Counts.Terminating }},
		{Name: "total_created", Head: "CREATED", Level: output.Wide, Value: func(r row) any { return r.Counts.TotalCreated }},
		{Name: "total_destroyed", Head: "DESTROYED", Level: output.Wide, Value: func(r row) any { return r.Counts.TotalDestroyed }},
		{Name: "age_min_seconds", Head: "MIN", Level: output.Wide, Value: func(r row) any { return r.Age(0) }},
		{Name: "age_p50_seconds", Head: "P50", Level: output.Wide, Value: func(r row) any { return r.Age(50) }},
		{Name: "age_p95_seconds", Head: "P95", Value: func(r row) any { return r.Age(95) }},
		{Name: "age_max_seconds", Head: "MAX", Value: func(r row) any { return r.Age(100) }, Tone: row.AgeTone},
		{Name: "stuck", Value: func(r row) any { return r.Stuck }, Text: row.StuckText, Tone: row.StuckTone},
		{Name: "stuck_causes", Level: output.Extra, Value: row.stuckCauses},
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
	return output.Seconds(ops.PercentileAge(r.Ages, percent))
}

// timeoutRate is the share of ended sandboxes that a time limit ended, to four digits.
func (r StatsRow) timeoutRate() any {
	rate := r.Counts.TimeoutRate()
	if rate == nil {
		return nil
	}
	return math.Round(*rate*1e4) / 1e4
}

// overActiveLimit says that more are active than may be (R4).
func (r StatsRow) overActiveLimit() bool {
	return check.ActiveOver().Judge(ops.Figures(r).Subject()) == sandbox.True
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

func (r StatsRow) stuckCauses() any {
	if r.Stuck == nil {
		return nil
	}
	return causeCounts(r.Census.CausesOfAll())
}

// StuckTone is its tone.
func (r StatsRow) StuckTone() output.Tone {
	if check.Stuck().Judge(ops.Figures(r).Subject()) == sandbox.True {
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
	switch r.timeoutGrade() {
	case check.GradeAlert:
		return text + " OVER"
	case check.GradeDegraded:
		return text + " degraded"
	case check.GradeHealthy, check.GradeUnknown:
	}
	return text
}

// RateTone is the tone of the time-out rate.
func (r StatsRow) RateTone() output.Tone {
	switch r.timeoutGrade() {
	case check.GradeAlert:
		return output.Bad
	case check.GradeDegraded:
		return output.Warn
	case check.GradeHealthy:
		return output.Good
	case check.GradeUnknown:
	}
	return output.Plain
}

func (r StatsRow) timeoutGrade() check.Grade { return check.GradeTimeouts(ops.Figures(r).Subject()) }

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
	list.Remark(StuckSummary(r.Census, program, "stats --look"))
	for _, f := range r.Providers {
		for _, raised := range StatsRow(f).Raised() {
			list.Remark(raised)
		}
	}
	if slices.ContainsFunc(r.Providers, func(f ops.Figures) bool { return StatsRow(f).overActiveLimit() }) {
		list.Remark("the target is the runbook's (`thresholds.active`), no quota: `" + program + " doctor` compares with the quotas of the providers")
	}
	list.Remark(refusedCleanups(r.Providers, program))
	list.Remark(AlertsLine(r.Alerts))
	list.Set("alerts", alertList(r.Alerts))
	list.Set("total", Object(FigureColumns(), StatsRow(r.Total)))
	for _, f := range r.Providers {
		if err := list.Add(StatsRow(f)); err != nil {
			return err
		}
	}
	return list.Close()
}

// refusedCleanups says where a guard has refused the runs of cleanup since the last success; "" =
// nowhere.
func refusedCleanups(all []ops.Figures, program string) string {
	var names []string
	runs := int64(0)
	for _, f := range all {
		if n := f.Counts.CleanupRefusals; n > 0 {
			names, runs = append(names, f.Provider), max(runs, n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("a guard has refused cleanup at %s (%s since the last success): `%s cleanup status` says what allows it", strings.Join(names, ", "), runsText(runs), program)
}

func runsText(n int64) string {
	if n == 1 {
		return "1 run"
	}
	return strconv.FormatInt(n, 10) + " runs"
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
