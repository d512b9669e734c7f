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

// thresholdFields are the limits as data, for scripts.
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
