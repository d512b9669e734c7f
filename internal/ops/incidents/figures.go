package incidents

import (
	"slices"
	"time"

	"sbx/internal/history"
	"sbx/internal/ops"
)

// addFigures compares the last count of all sandboxes before the first act, or the first of all where
// nothing was done, with the last one of the same verb and providers behind it. A count for which a
// provider could not be asked is too low, and is left out.
func (r *IncidentReport) addFigures() {
	var acted time.Time
	if len(r.Acts) > 0 {
		acted = r.Acts[0].At
	}
	var done []history.Event
	for _, e := range r.events {
		if !isCount(e) || slices.ContainsFunc(done, func(have history.Event) bool { return sameScope(have, e) }) {
			continue
		}
		done = append(done, e)
		var before, after *history.Event
		for i := range r.events {
			count := &r.events[i]
			switch {
			case !isCount(*count) || !sameScope(*count, e):
			case acted.IsZero() && before == nil, count.At.Before(acted):
				before = count
			default:
				after = count
			}
		}
		r.compareFigures(before, after)
	}
}

func isCount(e history.Event) bool { return len(e.Figures) > 0 && len(e.Errors) == 0 }

func sameScope(a, b history.Event) bool {
	return a.Verb == b.Verb && slices.Equal(slices.Sorted(slices.Values(a.Providers)), slices.Sorted(slices.Values(b.Providers)))
}

// compareFigures adds the figures of two counts. Of a figure that several verbs count, that one stays which
// was counted before and after, else the first.
func (r *IncidentReport) compareFigures(before, after *history.Event) {
	for _, name := range []string{ops.FigureListed, ops.FigureActive, ops.FigureStuck, ops.FigureUnjudged} {
		f := SeenFigure{Name: name}
		f.Before, f.BeforeAt = figureOf(before, name)
		f.After, f.AfterAt = figureOf(after, name)
		i := slices.IndexFunc(r.Figures, func(have SeenFigure) bool { return have.Name == name })
		switch {
		case f.Before == nil && f.After == nil:
		case i < 0:
			r.Figures = append(r.Figures, f)
		case !r.Figures[i].isCompared() && f.isCompared():
			r.Figures[i] = f
		}
	}
}

func (f SeenFigure) isCompared() bool { return f.Before != nil && f.After != nil }

func figureOf(count *history.Event, name string) (value *int64, at time.Time) {
	if count == nil {
		return nil, at
	}
	for _, f := range count.Figures {
		if f.Name == name && f.Value != nil {
			return f.Value, count.At
		}
	}
	return nil, at
}
