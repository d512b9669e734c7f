package commands

import (
	"math"
	"slices"
	"strconv"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// statsRow is the figures of one provider, or of all together.
type statsRow struct {
	provider     string
	providerType string
	counts       triage.FleetSignals
	stuck        *int64          // nil where the listing is missing
	unjudged     *int64          // of which it is not known whether they are stuck; nil likewise
	census       census          // what both count
	ages         []time.Duration // of running ones, where known
	limits       triage.Thresholds
	flags        []triage.Flag // of one provider; none of all together
}

// statsColumns are the items of CLI.md: the figures, and whose they are.
func statsColumns() []output.Column[statsRow] {
	columns := append([]output.Column[statsRow]{
		{Name: "provider", Value: func(r statsRow) any { return r.provider }},
		{Name: "provider_type", Level: output.Wide, Head: "TYPE", Value: func(r statsRow) any { return r.providerType }},
	}, figureColumns()...)
	return append(columns, output.Column[statsRow]{Name: "flags", Level: output.Extra, Value: func(r statsRow) any { return flagList(r.flags) }})
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
			{Key: "evidence", Value: evidence(f.Evidence)},
		}
	}
	return list
}

// raised are the flags that are true, a line each: "prod: R14 cleanup fails (cleanup
// failures 2)". What the table shows in a column of its own is left out.
func (r statsRow) raised() []string {
	var lines []string
	for _, f := range r.flags {
		if f.Verdict == sandbox.True && f.ID != "R4" && f.ID != "R12" {
			lines = append(lines, because(r.provider+": "+f.ID+" "+f.Say, f.Evidence))
		}
	}
	return lines
}

// figureColumns are the figures themselves, with their limits beside them for
// people.
func figureColumns() []output.Column[statsRow] {
	type row = statsRow
	return []output.Column[row]{
		{Name: "active", Value: func(r row) any { return r.counts.Active }, Text: row.activeText, Tone: row.activeTone},
		{Name: "provisioning", Head: "PROV", Value: func(r row) any { return r.counts.Provisioning }},
		{Name: "terminating", Head: "TERM", Value: func(r row) any { return r.counts.Terminating }},
		{Name: "total_created", Head: "CREATED", Level: output.Wide, Value: func(r row) any { return r.counts.TotalCreated }},
		{Name: "total_destroyed", Head: "DESTROYED", Level: output.Wide, Value: func(r row) any { return r.counts.TotalDestroyed }},
		{Name: "age_min_seconds", Head: "MIN", Level: output.Wide, Value: func(r row) any { return r.age(0) }},
		{Name: "age_p50_seconds", Head: "P50", Level: output.Wide, Value: func(r row) any { return r.age(50) }},
		{Name: "age_p95_seconds", Head: "P95", Value: func(r row) any { return r.age(95) }},
		{Name: "age_max_seconds", Head: "MAX", Value: func(r row) any { return r.age(100) }, Tone: row.ageTone},
		{Name: "stuck", Value: func(r row) any { return r.stuck }, Text: row.stuckText, Tone: row.stuckTone},
		{Name: "unjudged", Level: output.Wide, Value: func(r row) any { return r.unjudged }, Tone: row.unjudgedTone},
		{Name: "timeout_rate", Head: "TIMEOUTS", Value: func(r row) any { return r.rate() }, Text: row.rateText, Tone: row.rateTone},
		{Name: "thresholds", Level: output.Extra, Value: func(r row) any { return thresholdFields(r.limits) }},
	}
}

// thresholdFields are the limits as data, so that a script need not know them.
func thresholdFields(t triage.Thresholds) output.Fields {
	return output.Fields{
		{Key: "active_max", Value: t.ActiveMax},
		{Key: "stuck_age_seconds", Value: output.Seconds(t.StuckAge)},
		{Key: "watch_age_seconds", Value: output.Seconds(t.WatchAge)},
		{Key: "timeout_rate_high", Value: t.TimeoutRateHigh},
		{Key: "timeout_rate_good", Value: t.TimeoutRateGood},
	}
}

// age is a percentile of the ages of running sandboxes, by nearest rank, so
// that it is the age of a real one; nil where there is none.
func (r statsRow) age(percent int) any {
	if len(r.ages) == 0 {
		return nil
	}
	ages := slices.Sorted(slices.Values(r.ages))
	rank := (percent*len(ages) + 99) / 100
	return output.Seconds(ages[max(rank, 1)-1])
}

// rate is the share of ended sandboxes that a time limit ended, to four digits.
func (r statsRow) rate() any {
	rate := r.counts.TimeoutRate()
	if rate == nil {
		return nil
	}
	return math.Round(*rate*1e4) / 1e4
}

// over says that more are active than may be (strictly; ACCEPTANCE R4).
func (r statsRow) over() bool {
	return r.counts.Active != nil && *r.counts.Active > int64(r.limits.ActiveMax)
}

func (r statsRow) activeText() string {
	if r.counts.Active == nil {
		return "-"
	}
	text := strconv.FormatInt(*r.counts.Active, 10) + " of " + strconv.Itoa(r.limits.ActiveMax)
	if r.over() {
		return text + " OVER"
	}
	return text
}

func (r statsRow) activeTone() output.Tone {
	if r.over() {
		return output.Bad
	}
	return output.Plain
}

func (r statsRow) ageTone() output.Tone {
	if len(r.ages) > 0 && slices.Max(r.ages) > r.limits.StuckAge {
		return output.Warn
	}
	return output.Plain
}

func (r statsRow) stuckText() string {
	if r.stuck == nil {
		return "-"
	}
	return strconv.FormatInt(*r.stuck, 10) + " over " + sandbox.FormatDuration(r.limits.StuckAge)
}

func (r statsRow) stuckTone() output.Tone {
	if r.stuck != nil && *r.stuck > 0 {
		return output.Bad
	}
	return output.Plain
}

func (r statsRow) unjudgedTone() output.Tone {
	if r.unjudged != nil && *r.unjudged > 0 {
		return output.Warn
	}
	return output.Plain
}

// rateText grades the rate: between healthy and alert it is to be watched
// (ACCEPTANCE R3, R128).
func (r statsRow) rateText() string {
	rate := r.counts.TimeoutRate()
	if rate == nil {
		return "-"
	}
	text := decimal(*rate*100, 1) + "% of " + decimal(r.limits.TimeoutRateHigh*100, 1) + "%"
	switch {
	case *rate > r.limits.TimeoutRateHigh:
		return text + " OVER"
	case *rate >= r.limits.TimeoutRateGood:
		return text + " watch"
	}
	return text
}

func (r statsRow) rateTone() output.Tone {
	rate := r.counts.TimeoutRate()
	switch {
	case rate == nil:
		return output.Plain
	case *rate > r.limits.TimeoutRateHigh:
		return output.Bad
	case *rate >= r.limits.TimeoutRateGood:
		return output.Warn
	}
	return output.Good
}
