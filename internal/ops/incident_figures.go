package ops

import (
	"slices"
	"time"

	"sbx/internal/incident"
)

// keepLook adds a count of all sandboxes to an event, which keeps of each kind and scope the first and
// the last. One for which a provider could not be asked counts fewer, and is left out.
func keepLook(ev *incident.Event, look incident.Look, errs []error) {
	if len(errs) > 0 {
		return
	}
	look.Providers = slices.Sorted(slices.Values(look.Providers))
	same := 0
	for i, have := range ev.Looks {
		if !sameScope(have, look) {
			continue
		}
		if same++; same == 2 {
			ev.Looks[i] = look
			return
		}
	}
	ev.Looks = append(ev.Looks, look)
}

func sameScope(a, b incident.Look) bool {
	return a.Kind == b.Kind && slices.Equal(a.Providers, b.Providers)
}

// addFigures compares the last look before the first act, or the first of all where nothing was done,
// with the last look of the same kind and scope behind it.
func (r *IncidentReport) addFigures() {
	var looks []incident.Look
	for _, e := range r.Incident.Events {
		looks = append(looks, e.Looks...)
	}
	slices.SortStableFunc(looks, func(a, b incident.Look) int { return a.At.Compare(b.At) })
	var acted time.Time
	if len(r.Acts) > 0 {
		acted = r.Acts[0].At
	}
	var done []incident.Look
	for _, look := range looks {
		if slices.ContainsFunc(done, func(have incident.Look) bool { return sameScope(have, look) }) {
			continue
		}
		done = append(done, look)
		before, after := compared(looks, look, acted)
		r.compareLooks(before, after)
	}
}

// compared are the looks of one kind and scope before and after the acts; nil = there is none.
func compared(looks []incident.Look, of incident.Look, acted time.Time) (before, after *incident.Look) {
	for i := range looks {
		look := &looks[i]
		switch {
		case !sameScope(*look, of):
		case acted.IsZero() && before == nil, look.At.Before(acted):
			before = look
		default:
			after = look
		}
	}
	return before, after
}

// compareLooks adds the figures of two looks. Of a figure that several kinds of look have, that counts
// which was seen before and after, else the first.
func (r *IncidentReport) compareLooks(before, after *incident.Look) {
	for _, name := range lookFigures() {
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

func figureOf(look *incident.Look, name string) (value *float64, at time.Time) {
	if look == nil {
		return nil, at
	}
	for _, f := range look.Figures {
		if f.Name == name && f.Value != nil {
			return f.Value, look.At
		}
	}
	return nil, at
}

func lookFigures() []string {
	return []string{figureListed, figureActive, figureStuck, figureUnjudged}
}
