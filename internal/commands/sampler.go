package commands

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

// sampler looks at usage again and again. It keeps the last samples of each
// sandbox, so that a later look of --watch needs but one more, and what else was seen
// of it.
type sampler struct {
	deps    *Deps
	fleet   *fleet.Fleet
	options topOptions
	past    map[sandbox.Ref][]sandbox.Usage

	mu   sync.Mutex
	seen map[sandbox.Ref]glance
}

// glance is a look for life, and when it was taken.
type glance struct {
	fleet.Observation

	at time.Time
}

// glanceAge is how old a look for life may be when --watch shows the next figures.
const glanceAge = 15 * time.Second

func newSampler(d *Deps, f *fleet.Fleet, o topOptions) *sampler {
	return &sampler{deps: d, fleet: f, options: o, past: map[sandbox.Ref][]sandbox.Usage{}, seen: map[sandbox.Ref]glance{}}
}

// look gives the usage of the chosen sandboxes, the busiest first, and what
// could not be read. The error is that of the choice: a word that names no
// single sandbox.
func (s *sampler) look(ctx context.Context, progress *output.Progress) ([]views.UsageRow, []error, error) {
	targets, errs := s.targets(ctx)
	if len(targets) == 0 && len(errs) == 1 && fault.KindOf(errs[0]) == fault.KindUsage {
		return nil, nil, errs[0]
	}
	failed := s.sample(ctx, targets, progress)
	s.observe(ctx, targets)
	var rows []views.UsageRow
	kept := map[sandbox.Ref][]sandbox.Usage{}
	for _, t := range targets {
		ref := t.Ref()
		if err := failed[ref]; err != nil && !s.vanished(err) {
			errs = append(errs, err)
		}
		if samples := s.past[ref]; len(samples) > 0 {
			kept[ref] = samples
			rows = append(rows, s.usageRowOf(t, samples))
		}
	}
	s.past = kept
	maps.DeleteFunc(s.seen, func(ref sandbox.Ref, _ glance) bool { return kept[ref] == nil })
	slices.SortStableFunc(rows, busiest)
	return rows, distinct(ops.CauseOnce(ctx, errs)), nil
}

// observe looks at what runs as every verb does that judges it, all at once.
func (s *sampler) observe(ctx context.Context, targets []sandbox.Sandbox) {
	var all sync.WaitGroup
	earlier := maps.Clone(s.seen)
	for _, t := range targets {
		before, known := earlier[t.Ref()]
		samples := s.past[t.Ref()]
		if t.State != sandbox.StateRunning || len(samples) == 0 || known && time.Since(before.at) < glanceAge {
			continue
		}
		all.Go(func() {
			g := glance{s.fleet.ObserveLifeBeside(ctx, t, samples), time.Now()}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen[t.Ref()] = g
		})
	}
	all.Wait()
}

// usageRowOf is the line of one sandbox: its figures of now, and the judgement by all that
// was seen of it. Of two series of samples the longer one tells more.
func (s *sampler) usageRowOf(t sandbox.Sandbox, samples []sandbox.Usage) views.UsageRow {
	limits, now := s.deps.Thresholds(t), s.deps.Now()
	g, looked := s.seen[t.Ref()]
	if !looked {
		g.Observation = fleet.Observation{Sandbox: t}
	}
	longer := triage.TrendOf(g.Usage.Got, limits)
	if g.Usage.Err != nil || longer.Span <= triage.TrendOf(samples, limits).Span {
		g.Usage = fleet.Part[[]sandbox.Usage]{Got: samples}
	}
	row := views.UsageRowOf(t.Ref(), samples, limits, g.Judge(limits, now))
	if row.Trend.TooShort {
		row.Trend.MemorySlope = longer.MemorySlope
	}
	return row
}

// targets are the named sandboxes, or all that run.
func (s *sampler) targets(ctx context.Context) ([]sandbox.Sandbox, []error) {
	if len(s.options.words) > 0 {
		found, err := s.fleet.Find(ctx, s.options.words, fleet.FindOptions{})
		if err != nil {
			return found, []error{err}
		}
		return found, nil
	}
	l := s.fleet.Collect(ctx, providers.Query{States: []sandbox.State{sandbox.StateRunning}})
	return slices.DeleteFunc(l.Items, func(b sandbox.Sandbox) bool { return b.State != sandbox.StateRunning }), l.Errors
}

// sample adds the next samples of each target to the past ones and gives the
// last error of each.
func (s *sampler) sample(ctx context.Context, targets []sandbox.Sandbox, progress *output.Progress) map[sandbox.Ref]error {
	refs := make([]sandbox.Ref, len(targets))
	rounds := 1
	for i, t := range targets {
		refs[i] = t.Ref()
		if t.State == sandbox.StateRunning {
			rounds = max(rounds, s.options.samples-len(s.past[refs[i]]))
		}
	}
	failed := map[sandbox.Ref]error{}
	if len(refs) == 0 {
		return failed
	}
	n := 1
	progress.Update(fmt.Sprintf("1 of %d", rounds))
	for round := range s.fleet.Samples(ctx, refs, rounds, s.options.every) {
		for _, sample := range round.Samples {
			if failed[sample.Ref] = sample.Err; sample.Err == nil {
				s.keep(sample)
			}
		}
		n++
		progress.Update(fmt.Sprintf("%d of %d", min(n, rounds), rounds))
	}
	return failed
}

// keep never holds less than two samples, so that a watch knows rates from its
// second look on.
func (s *sampler) keep(sample fleet.Sample) {
	samples := append(s.past[sample.Ref], sample.Usage)
	s.past[sample.Ref] = samples[max(0, len(samples)-max(2, s.options.samples)):]
}

// vanished says that a sandbox which nobody named has ended between two looks:
// that is life, and no failure.
func (s *sampler) vanished(err error) bool {
	kind := fault.KindOf(err)
	return len(s.options.words) == 0 && (kind == fault.KindGone || kind == fault.KindNotFound)
}

// busiest sorts by falling cpu; what is not known stands last.
func busiest(a, b views.UsageRow) int {
	cpu := func(r views.UsageRow) float64 {
		if r.Trend.CPUPercent == nil {
			return -1
		}
		return *r.Trend.CPUPercent
	}
	return cmp.Or(cmp.Compare(cpu(b), cpu(a)), cmp.Compare(a.Ref.String(), b.Ref.String()))
}

// distinct says a thing once that is true of many sandboxes, such as an
// ability that their provider lacks.
func distinct(errs []error) []error {
	var out []error
	for _, err := range errs {
		if !slices.ContainsFunc(out, func(o error) bool { return o.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return out
}
