package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// figure is a part of the header line of a profile.
type figure struct {
	text string // "" = there is nothing to say
	tone output.Tone
}

// feedFigures is what there is to say of a profile that was read, the most important first. The error of a
// listing that is stale, or of figures that are missing, comes before what it casts doubt on.
func (m *Model) feedFigures(f *feed) []figure {
	now := m.now()
	s := f.figures()
	answers := views.ConnectionRow{Connection: f.newest, Now: now}
	age := sandbox.FormatDuration(max(0, now.Sub(f.round.At)))
	all := []figure{
		{"active " + s.ActiveText(), s.ActiveTone()},
		{"stuck " + s.StuckText(), s.StuckTone()},
		{m.lateText(f), output.Warn},
	}
	if oldest := s.Age(100); oldest != nil {
		all = append(all, figure{"oldest " + sandbox.FormatElapsed(time.Duration(*oldest*float64(time.Second))), s.AgeTone()})
	}
	if rate := s.RateText(); rate != "-" {
		all = append(all, figure{"timeouts " + rate, s.RateTone()})
	}
	problems := []figure{{answers.BreakerText(), output.Bad}, {answers.ClockText(), output.Warn}}
	if f.stale() {
		for i := range all {
			all[i].tone = output.Muted
		}
		doubt := append([]figure{{"stale " + age + ": " + f.err.Error(), output.Bad}}, all[2:]...)
		return append(append(all[:2:2], doubt...), problems...)
	}
	if err := f.round.FiguresErr; err != nil {
		all = append(append(all[:2:2], figure{m.cells.Cut("counters not read: "+err.Error(), m.width/2), output.Bad}), all[2:]...)
	}
	if all = append(all, problems...); f.open > 0 {
		all = append(all, figure{fmt.Sprintf("%d not judged", f.open), output.Muted})
	}
	return append(all, figure{answers.LatencyText(), output.Muted}, figure{"read " + age + " ago", output.Muted})
}

// slowAnswer is from when on the screen says that a profile does not answer; a usual listing takes less.
const slowAnswer = 2 * time.Second

// lateText says for how long a profile has not answered; "" = it is not late.
func (m *Model) lateText(f *feed) string {
	if waited := m.now().Sub(f.asked); f.asking && waited >= slowAnswer {
		return "no answer for " + sandbox.FormatDuration(waited)
	}
	return ""
}

// leastCut is how many cells an error needs to say anything.
const leastCut = 20

// shortFigures are how many have not ended, as the strip counts them, what of its quota is used, and how many are stuck,
// or why that is not known.
func (m *Model) shortFigures(f *feed) []figure {
	late := figure{m.lateText(f), output.Warn}
	switch {
	case f.stale():
		return []figure{{"STALE " + sandbox.FormatDuration(max(0, m.now().Sub(f.round.At))), output.Bad}}
	case !f.known && f.err != nil:
		return []figure{{"not read", output.Bad}}
	case !f.known && late.text != "":
		return []figure{late}
	case !f.known:
		return []figure{{"reading", output.Muted}}
	}
	all := []figure{{strconv.Itoa(f.living), output.Muted}}
	if s := f.figures(); s.QuotaText() != "" {
		all = append(all, figure{s.QuotaText(), s.QuotaTone()})
	}
	if f.stuck > 0 {
		all = append(all, figure{fmt.Sprintf("%d stuck", f.stuck), output.Bad})
	}
	if f.round.FiguresErr != nil {
		all = append(all, figure{"counters not read", output.Bad})
	}
	if late.text != "" {
		all = append(all, late)
	}
	return all
}

// feedText is all that is known of a profile.
func (m *Model) feedText(f *feed) string {
	var parts []string
	figures := m.shortFigures(f)
	if f.known {
		figures = m.feedFigures(f)
	} else if f.err != nil {
		figures = append(figures, figure{text: f.err.Error()})
	}
	for _, one := range figures {
		if one.text != "" {
			parts = append(parts, one.text)
		}
	}
	return strings.Join(parts, ", ")
}
