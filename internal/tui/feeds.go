package tui

import (
	"fmt"
	"strconv"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// figure is a part of the header line of a profile.
type figure struct {
	text string // "" = there is nothing to say
	tone output.Tone
	cut  bool // a part of the text is better than none of it: it has an error
}

// feedFigures is what there is to say of a profile that was read, the most important first. The error of a
// listing that is stale, or of figures that are missing, comes before what it casts doubt on.
func (m *Model) feedFigures(f *feed) []figure {
	now := m.now()
	s := f.figures()
	answers := views.ConnectionRow{Connection: f.newest, Now: now}
	age := sandbox.FormatDuration(max(0, now.Sub(f.round.At)))
	all := []figure{
		{"active " + s.ActiveText(), s.ActiveTone(), false},
		{"stuck " + s.StuckText(), s.StuckTone(), false},
	}
	if oldest := s.Age(100); oldest != nil {
		all = append(all, figure{"oldest " + sandbox.FormatElapsed(time.Duration(*oldest*float64(time.Second))), s.AgeTone(), false})
	}
	if rate := s.RateText(); rate != "-" {
		all = append(all, figure{"timeouts " + rate, s.RateTone(), false})
	}
	problems := []figure{{answers.BreakerText(), output.Bad, true}, {answers.ClockText(), output.Warn, false}}
	if f.stale() {
		for i := range all {
			all[i].tone = output.Muted
		}
		doubt := append([]figure{{"stale " + age + ": " + f.err.Error(), output.Bad, true}}, all[2:]...)
		return append(append(all[:2:2], doubt...), problems...)
	}
	if err := f.round.FiguresErr; err != nil {
		all = append(append(all[:2:2], figure{m.cells.Cut("counters not read: "+err.Error(), m.width/2), output.Bad, true}), all[2:]...)
	}
	if all = append(all, problems...); f.open > 0 {
		all = append(all, figure{fmt.Sprintf("%d not judged", f.open), output.Muted, false})
	}
	return append(all, figure{answers.LatencyText(), output.Muted, false}, figure{"read " + age + " ago", output.Muted, false})
}

// leastCut is how many cells an error needs to say anything.
const leastCut = 20

// fitFigures leaves out what has no room in a number of cells, from the least important on.
func (m *Model) fitFigures(figures []figure, left int) []segment {
	var shown []segment
	space := ""
	for _, f := range figures {
		width := output.Width(f.text)
		if f.text == "" || width > left && (!f.cut || left < leastCut) {
			continue
		}
		shown = append(shown, segment{space + f.text, f.tone})
		space = "  "
		left -= width + len(space)
	}
	return shown
}

// wideFeed is the room from which a profile has the figures with their names.
const wideFeed = 30

// shortFigures are how many run and how many of them are stuck, or why that is not known.
func (m *Model) shortFigures(f *feed) []figure {
	if f.stale() {
		return []figure{{"STALE " + sandbox.FormatDuration(max(0, m.now().Sub(f.round.At))), output.Bad, false}, {f.err.Error(), output.Bad, true}}
	}
	s := f.figures()
	all := []figure{{"-", output.Muted, false}}
	if n := s.Counts.Active; n != nil {
		all[0] = figure{strconv.FormatInt(*n, 10), output.Plain, false}
	}
	if f.stuck > 0 {
		all = append(all, figure{fmt.Sprintf("%d stuck", f.stuck), output.Bad, false})
	}
	return all
}
