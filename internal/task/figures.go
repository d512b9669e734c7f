package task

import (
	"math"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Unit says what a figure's value counts.
type Unit string

// The units.
const (
	UnitShare    Unit = "share" // 0..1
	UnitSeconds  Unit = "seconds"
	UnitMessages Unit = "messages"
	UnitCount    Unit = "count"
)

// Figure is one measure of many tasks beside its target.
type Figure struct {
	ID      string // of the source that asks for it
	Group   string
	Title   string
	Value   *float64 // nil = there is nothing to measure
	Unit    Unit
	Target  Target
	Samples int    // what the value was taken from
	Same    string // the ID of the figure that this one repeats; "" = none
	Why     string // what the value is of, and what it cannot know; "" = the title says all
}

// Target is what a figure is to be. The zero value is none: a figure to compare
// with itself over time.
type Target struct {
	Sign  string // ">", ">=", "<", "<="
	Bound float64
}

// Verdict is true for a target that is met, false for one that is missed, and unknown
// where there is no sample or no target.
func (f Figure) Verdict() sandbox.Verdict {
	if f.Value == nil || f.Samples == 0 || f.Target.Sign == "" {
		return sandbox.Unknown
	}
	return sandbox.VerdictOf(f.Target.isMet(*f.Value))
}

func (t Target) isMet(v float64) bool {
	switch t.Sign {
	case ">":
		return v > t.Bound
	case ">=":
		return v >= t.Bound
	case "<":
		return v < t.Bound
	}
	return v <= t.Bound
}

// The groups of figures, in the order of the report.
const (
	groupSuccess    = "success and retries"
	groupStop       = "stop and cancellation"
	groupResume     = "health and resume"
	groupInactivity = "inactivity"
	groupTimeout    = "timeout"
)

// Figures measures tasks. A task that is not over counts where its figure is about
// what has happened to it already. now is the store's clock.
func Figures(tasks []Task, now time.Time) []Figure {
	m := measuredTasks{tasks, now}
	return slices.Concat(m.successFigures(), m.stopFigures(), m.resumeFigures(), m.inactivityFigures(), m.timeoutFigures())
}

// measuredTasks is what the figures are taken from.
type measuredTasks struct {
	tasks []Task
	now   time.Time
}

// shareFigure is a figure that says how many of those that count pass; 0 <= pass <= of.
func shareFigure(f Figure, pass, of int) Figure {
	f.Unit, f.Samples = UnitShare, of
	if of > 0 {
		v := float64(pass) / float64(of)
		f.Value = &v
	}
	return f
}

// repeatFigure is a figure under the ID of another source.
func repeatFigure(id string, f Figure) Figure {
	f.ID, f.Same = id, f.ID
	return f
}

// percentileFigure is a figure that is a percentile by nearest rank, so that it is one of the
// samples: percent of 100.
func percentileFigure(f Figure, unit Unit, values []float64, percent int) Figure {
	f.Unit, f.Samples = unit, len(values)
	if len(values) > 0 {
		sorted := slices.Sorted(slices.Values(values))
		n := max((percent*len(sorted)+99)/100, 1)
		v := math.Round(sorted[n-1]*1e3) / 1e3
		f.Value = &v
	}
	return f
}

// countTasks goes over tasks: yes and of say whether one counts, and whether it passes.
func (m measuredTasks) countTasks(of, yes func(Task) bool) (pass, all int) {
	for _, t := range m.tasks {
		if !of(t) {
			continue
		}
		all++
		if yes(t) {
			pass++
		}
	}
	return pass, all
}

// endedAttempts gives the attempts that have ended.
func (m measuredTasks) endedAttempts() []Attempt {
	var all []Attempt
	for _, t := range m.tasks {
		for _, a := range t.Attempts {
			if a.Exit != nil {
				all = append(all, a)
			}
		}
	}
	return all
}
