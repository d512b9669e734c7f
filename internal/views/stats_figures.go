package views

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/check"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// StatsRow is the figures of one provider, or of all together, beside their limits.
type StatsRow look.Figures

// StatsItem is one profile with the counts of its sandboxes.
type StatsItem struct {
	Provider     string `json:"provider" table:""`               // The profile.
	ProviderType string `json:"provider_type" table:"TYPE,wide"` // The type of the profile.

	Figures

	Flags []FlagItem `json:"flags"` // The warnings of the runbook that apply.
}

// Figures is the figures of one profile or of all.
type Figures struct {
	Active         *int64   `json:"active" table:"ACTIVE OF TARGET"`        // Running sandboxes, and those whose requested end is not proved.
	Provisioning   *int64   `json:"provisioning" table:"PROV"`              // Sandboxes that start.
	Terminating    *int64   `json:"terminating" table:"TERM"`               // Sandboxes that are being ended.
	TotalCreated   *int64   `json:"total_created" table:"CREATED,wide"`     // Made since the provider counts.
	TotalDestroyed *int64   `json:"total_destroyed" table:"DESTROYED,wide"` // Ended since the provider counts.
	AgeMinSeconds  *float64 `json:"age_min_seconds" table:"MIN,wide"`       // The age of the youngest.
	AgeP50Seconds  *float64 `json:"age_p50_seconds" table:"P50,wide"`       // The age that half of them have not reached.
	AgeP95Seconds  *float64 `json:"age_p95_seconds" table:"P95"`            // The age that 95 of 100 have not reached.
	AgeMaxSeconds  *float64 `json:"age_max_seconds" table:"MAX"`            // The age of the oldest.
	Stuck          *int64   `json:"stuck" table:""`                         // How many are stuck.
	// How many are stuck for which cause, the most frequent first; null where the listing is
	// missing.
	StuckCauses *output.Ordered[int] `json:"stuck_causes"`
	Unjudged    *int64               `json:"unjudged" table:",wide"`        // How many could not be judged.
	TimeoutRate *float64             `json:"timeout_rate" table:"TIMEOUTS"` // The share of ended ones that a time limit ended, from 0 to 1.
	Thresholds  Thresholds           `json:"thresholds"`                    // The limits that the figures are compared with.
}

// Thresholds are the limits of the runbook.
type Thresholds struct {
	ActiveMax       int     `json:"active_max"`        // More running sandboxes than this are a warning.
	StuckAgeSeconds float64 `json:"stuck_age_seconds"` // Older silent sandboxes are stuck.
	WatchAgeSeconds float64 `json:"watch_age_seconds"` // Older silent sandboxes are watched.
	TimeoutRateHigh float64 `json:"timeout_rate_high"` // A higher timeout rate is a warning.
	TimeoutRateGood float64 `json:"timeout_rate_good"` // A lower timeout rate is good.
}

// FlagItem is one warning of the runbook.
type FlagItem struct {
	ID          string          `json:"id"`          // Its name.
	Requirement *string         `json:"requirement"` // Its number in docs/REQUIREMENTS.md, until the next release; null = none.
	Severity    triage.Severity `json:"severity"`    // critical, warning or info.
	Verdict     sandbox.Verdict `json:"verdict"`     // Whether it applies.
	Say         string          `json:"say"`         // What it says.
	Evidence    []EvidenceItem  `json:"evidence"`    // What was seen.
}

// StatsColumns are the columns of a StatsItem, with the limits beside the figures for people.
func StatsColumns() []output.Column[StatsRow] {
	type column = output.Column[StatsRow]
	return output.Columns(StatsRow.Item,
		column{Name: "active", Text: StatsRow.ActiveText, Tone: StatsRow.ActiveTone},
		column{Name: "age_max_seconds", Tone: StatsRow.AgeTone},
		column{Name: "stuck", Text: StatsRow.StuckText, Tone: StatsRow.StuckTone},
		column{Name: "unjudged", Tone: StatsRow.unjudgedTone},
		column{Name: "timeout_rate", Text: StatsRow.RateText, Tone: StatsRow.RateTone},
	)
}

// Item is the row as documents have it.
func (r StatsRow) Item() StatsItem {
	c, l := r.Counts, r.Limits
	item := StatsItem{Provider: r.Provider, ProviderType: r.ProviderType, Flags: flagItems(r.Flags), Figures: Figures{
		Active: c.Active, Provisioning: c.Provisioning, Terminating: c.Terminating, TotalCreated: c.TotalCreated, TotalDestroyed: c.TotalDestroyed,
		AgeMinSeconds: r.Age(0), AgeP50Seconds: r.Age(50), AgeP95Seconds: r.Age(95), AgeMaxSeconds: r.Age(100),
		Stuck: r.Stuck, Unjudged: r.Unjudged, TimeoutRate: roundedOrNil(c.TimeoutRate()),
		Thresholds: Thresholds{l.ActiveMax, output.Seconds(l.StuckAge), output.Seconds(l.WatchAge), l.TimeoutRateHigh, l.TimeoutRateGood},
	}}
	if r.Stuck != nil {
		item.StuckCauses = new(causeCounts(r.Census.CausesOfAll()))
	}
	return item
}

// flagItems are the answers to questions of the runbook as data.
func flagItems(flags []triage.Flag) []FlagItem {
	items := make([]FlagItem, len(flags))
	for i, f := range flags {
		items[i] = FlagItem{f.ID, orNil(requirement.Of(f.ID)), f.Severity, f.Verdict, f.Say, EvidenceList(f.Evidence)}
	}
	return items
}

// Raised are the flags that are true, a line each: "prod: R14 cleanup fails (cleanup
// failures 2)". What the table shows in a column of its own is left out.
func (r StatsRow) Raised() []string {
	var lines []string
	for _, f := range r.Flags {
		if f.Verdict == sandbox.True && f.Severity != triage.Info && f.ID != "too_many_active" && f.ID != "sandbox_timeout_high" {
			lines = append(lines, ClaimWithEvidence(r.Provider+": "+f.Say, f.Evidence))
		}
	}
	for _, note := range defaultNotes(r.Flags) {
		lines = append(lines, r.Provider+": "+note)
	}
	return lines
}

// defaultNotes are the flags that say that a default limit does not fit (check.DefaultNote).
func defaultNotes(flags []triage.Flag) []string {
	var notes []string
	for _, f := range flags {
		if f.ID == check.ActiveOver().ID && f.Verdict == sandbox.True && f.Severity == triage.Info {
			notes = append(notes, f.Say)
		}
	}
	return notes
}

// Age is a percentile of the ages of running sandboxes, in seconds, by nearest rank, so
// that it is the age of a real one; nil where there is none.
func (r StatsRow) Age(percent int) *float64 {
	if len(r.Ages) == 0 {
		return nil
	}
	return new(output.Seconds(look.PercentileAge(r.Ages, percent)))
}

// overActiveLimit says that more are active than may be (R4).
func (r StatsRow) overActiveLimit() bool {
	return check.ActiveOver().Judge(look.Figures(r).Subject()) == sandbox.True
}

// ActiveText is the count of running sandboxes.
func (r StatsRow) ActiveText() string {
	if r.Counts.Active == nil {
		return "-"
	}
	text := strconv.FormatInt(*r.Counts.Active, 10) + " of " + strconv.Itoa(r.Limits.ActiveMax)
	switch {
	case r.overActiveLimit():
		return text + " ALERT"
	case check.ActiveOver().DefaultNote(look.Figures(r).Subject()) != "":
		return text + " (default)"
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

// QuotaText is the share of the quota that is used; "" = it is not known.
func (r StatsRow) QuotaText() string {
	if r.Counts.QuotaUsed == nil {
		return ""
	}
	return Decimal(*r.Counts.QuotaUsed*100, 0) + "% of quota"
}

// QuotaTone is its tone.
func (r StatsRow) QuotaTone() output.Tone {
	if check.QuotaNear().Judge(look.Figures(r).Subject()) == sandbox.True {
		return output.Warn
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
	if check.Stuck().Judge(look.Figures(r).Subject()) == sandbox.True {
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
		return text + " ALERT"
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

func (r StatsRow) timeoutGrade() check.Grade { return check.GradeTimeouts(look.Figures(r).Subject()) }

// StatsKeys are the keys of stats beside its items.
type StatsKeys struct {
	Alerts *[]AlertItem `json:"alerts"` // The alerts that are pending or firing; this verb evaluates none.
	Total  *Figures     `json:"total"`  // The figures of all profiles together.
}

// ShowStats shows the figures of every provider, and in documents those of all together.
// Program is what sbx is called.
func ShowStats(p *output.Printer, schema string, r *look.StatsResult, program string) error {
	list, err := output.NewList(p, output.ListSpec[StatsRow]{Schema: schema, Columns: StatsColumns()})
	if err != nil {
		return err
	}
	for _, err := range r.Errors {
		list.Fail(err)
	}
	list.Remark(look.MayRunText(r.MayRun))
	list.Remark(StuckSummary(r.Census, program, "stats --look"))
	for _, f := range r.Providers {
		for _, raised := range StatsRow(f).Raised() {
			list.Remark(raised)
		}
	}
	if slices.ContainsFunc(r.Providers, func(f look.Figures) bool { return StatsRow(f).overActiveLimit() }) {
		list.Remark("the target is the runbook's (`thresholds.active`), no quota: `" + program + " doctor` compares with the quotas of the providers")
	}
	list.Remark(refusedCleanups(r.Providers, program))
	list.Remark(AlertsLine(r.Alerts))
	total := StatsRow(r.Total).Item().Figures
	list.Set(StatsKeys{Alerts: new(alertItems(r.Alerts)), Total: &total})
	for _, f := range r.Providers {
		if err := list.Add(StatsRow(f)); err != nil {
			return err
		}
	}
	return list.Close()
}

// refusedCleanups says where a guard has refused the runs of cleanup since the last success; "" =
// nowhere.
func refusedCleanups(all []look.Figures, program string) string {
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
	return fmt.Sprintf(
		"a guard has refused cleanup at %s (%s since the last success): `%s cleanup status` says what allows it", strings.Join(names, ", "), runsText(runs),
		program,
	)
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
