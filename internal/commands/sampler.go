package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// sampler looks at usage again and again. It keeps the last samples of each
// sandbox, so that a later look of --watch needs but one more.
type sampler struct {
	deps    *Deps
	fleet   *fleet.Fleet
	options topOptions
	past    map[sandbox.Ref][]sandbox.Usage
}

func newSampler(d *Deps, f *fleet.Fleet, o topOptions) *sampler {
	return &sampler{deps: d, fleet: f, options: o, past: map[sandbox.Ref][]sandbox.Usage{}}
}

// look gives the usage of the chosen sandboxes, the busiest first, and what
// could not be read. The error is that of the choice: a word that names no
// single sandbox.
func (s *sampler) look(ctx context.Context, progress *output.Progress) ([]usageRow, []error, error) {
	targets, errs := s.targets(ctx)
	if len(targets) == 0 && len(errs) == 1 && fault.KindOf(errs[0]) == fault.KindUsage {
		return nil, nil, errs[0]
	}
	failed := s.sample(ctx, targets, progress)
	var rows []usageRow
	kept := map[sandbox.Ref][]sandbox.Usage{}
	for _, t := range targets {
		ref := t.Ref()
		if err := failed[ref]; err != nil && !s.vanished(err) {
			errs = append(errs, err)
		}
		if samples := s.past[ref]; len(samples) > 0 {
			kept[ref] = samples
			rows = append(rows, measured(ref, samples, s.deps.thresholds(t)))
		}
	}
	s.past = kept
	slices.SortStableFunc(rows, busiest)
	return rows, distinct(once(ctx, errs)), nil
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
func busiest(a, b usageRow) int {
	cpu := func(r usageRow) float64 {
		if r.trend.CPUPercent == nil {
			return -1
		}
		return *r.trend.CPUPercent
	}
	return cmp.Or(cmp.Compare(cpu(b), cpu(a)), cmp.Compare(a.ref.String(), b.ref.String()))
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
