package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TopRequest says whose usage is sampled, and how often.
type TopRequest struct {
	Words   []string      // none = every running sandbox
	Typed   []string      // those of Words that a person typed; a pipe brought the others
	Samples int           // that are judged together
	Every   time.Duration // from one sample to the next
	Order   TopOrder
	Limit   int  // at most so many in the result; 0 = all
	Live    bool // it is sampled again and again, for a screen
}

// SandboxUsage is what a sandbox uses, and what its samples say together.
type SandboxUsage struct {
	Sandbox sandbox.Sandbox
	Last    sandbox.Usage
	Trend   triage.Trend
	Limits  triage.Thresholds
	Verdict triage.Verdict
	Err     error // why nothing could be measured; nil = it was
}

// UsageOf reads the samples of one sandbox; there is one at least.
func UsageOf(s sandbox.Sandbox, samples []sandbox.Usage, t triage.Thresholds, verdict triage.Verdict) SandboxUsage {
	last := slices.MaxFunc(samples, func(a, b sandbox.Usage) int { return a.At.Compare(b.At) })
	return SandboxUsage{Sandbox: s, Last: last, Trend: triage.TrendOf(samples, t), Limits: t, Verdict: verdict}
}

// TopResult is one look, in the order that was asked for, and what could not be read.
type TopResult struct {
	Usage     []SandboxUsage
	Truncated bool // there are more than the limit allows
	Errors    []error
}

// Sampler samples usage again and again. It keeps the last samples of each sandbox, so that
// a later look needs but one more, and what else was seen of it.
type Sampler struct {
	env   *ops.Env
	fleet *fleet.Fleet
	req   TopRequest
	past  map[sandbox.Ref][]sandbox.Usage

	mu   sync.Mutex
	seen map[sandbox.Ref]lifeSigns
}

// lifeSigns is what showed whether a sandbox works, and when that was read.
type lifeSigns struct {
	fleet.Observation

	at time.Time
}

// lifeSignsAge is how old signs of life may be beside the figures of a later look.
const lifeSignsAge = 15 * time.Second

// NewSampler opens the fleet whose usage is sampled.
func NewSampler(ctx context.Context, env *ops.Env, req TopRequest) (*Sampler, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return &Sampler{env: env, fleet: f, req: req, past: map[sandbox.Ref][]sandbox.Usage{}, seen: map[sandbox.Ref]lifeSigns{}}, nil
}

// Look gives the usage of the chosen sandboxes. The error is that of the choice: a word
// that names no single sandbox.
func (s *Sampler) Look(ctx context.Context, watch ops.Observer) (*TopResult, error) {
	progress := watch.Progress("sampling")
	defer progress.Done()
	targets, errs := s.listTargets(ctx)
	if err := errors.Join(errs...); len(targets) == 0 && fault.KindOf(err) == fault.KindUsage {
		return nil, err
	}
	failed := s.sampleTargets(ctx, targets, progress)
	s.observeRunning(ctx, targets, progress)
	r := &TopResult{}
	kept := map[sandbox.Ref][]sandbox.Usage{}
	for _, t := range targets {
		ref := t.Ref()
		samples, err := s.past[ref], failed[ref]
		if len(samples) > 0 {
			kept[ref] = samples
			r.Usage = append(r.Usage, s.usageOf(t, samples))
		} else if t.State == sandbox.StateRunning && fault.SettlesLook(err) {
			r.Usage = append(r.Usage, s.unmeasured(t, err))
			continue
		}
		if err != nil && !s.vanishedUnnamed(err) {
			errs = append(errs, err)
		}
	}
	s.past = kept
	maps.DeleteFunc(s.seen, func(ref sandbox.Ref, _ lifeSigns) bool { return kept[ref] == nil })
	s.req.Order.sortUsage(r.Usage)
	if n := s.req.Limit; n > 0 && len(r.Usage) > n {
		r.Usage, r.Truncated = r.Usage[:n], true
	}
	r.Errors = withoutDuplicates(ops.CauseOnce(ctx, errs))
	return r, nil
}

// observeRunning looks at what runs as every verb does that judges it, all at once.
func (s *Sampler) observeRunning(ctx context.Context, targets []sandbox.Sandbox, progress ops.Progress) {
	var open []sandbox.Sandbox
	for _, t := range targets {
		before, known := s.seen[t.Ref()]
		if t.State == sandbox.StateRunning && len(s.past[t.Ref()]) > 0 && (!known || time.Since(before.at) >= lifeSignsAge) {
			open = append(open, t)
		}
	}
	at, tell := fleet.LookProgress{All: len(open)}, ops.TellLooks(progress)
	s.fleet.ForEach(open, func(i int) {
		t := open[i]
		signs := lifeSigns{s.observe(ctx, t, len(open) <= mostTrends), time.Now()}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen[t.Ref()] = signs
		at.Done++
		tell(at)
	})
}

// mostTrends is for how many sandboxes the stored samples of those at work are read, a request
// each: they show nothing but the trend of their memory.
const mostTrends = 500

// observe asks a sandbox that shows work for its usage alone.
func (s *Sampler) observe(ctx context.Context, t sandbox.Sandbox, trend bool) fleet.Observation {
	samples := s.past[t.Ref()]
	if s.fleet.ShowsWork(t, samples, s.env.Thresholds(t)) {
		return s.fleet.ObserveUsage(ctx, t, samples, trend)
	}
	return s.fleet.ObserveLifeWithSamples(ctx, t, samples)
}

// usageOf gives the current figures of one sandbox and the judgement by all its samples. Of two
// series of samples the longer one is used.
func (s *Sampler) usageOf(t sandbox.Sandbox, samples []sandbox.Usage) SandboxUsage {
	limits, now := s.env.Thresholds(t), s.env.Now()
	signs, looked := s.seen[t.Ref()]
	if !looked {
		signs.Observation = fleet.Observation{Sandbox: t}
	}
	longer := triage.TrendOf(signs.Usage.Got, limits)
	if signs.Usage.Err != nil || longer.Span <= triage.TrendOf(samples, limits).Span {
		signs.Usage = fleet.Part[[]sandbox.Usage]{Got: samples}
	}
	u := UsageOf(t, samples, limits, signs.Judge(limits, now))
	if u.Trend.TooShort {
		u.Trend.MemorySlope = longer.MemorySlope
	}
	return u
}

// unmeasured is a running sandbox that did not answer: its figures are unknown, and so is whether it works.
func (s *Sampler) unmeasured(t sandbox.Sandbox, err error) SandboxUsage {
	limits := s.env.Thresholds(t)
	seen := fleet.Observation{Sandbox: t, Usage: fleet.Part[[]sandbox.Usage]{Err: err}}
	return SandboxUsage{Sandbox: t, Limits: limits, Verdict: seen.Judge(limits, s.env.Now()), Err: err}
}

func (s *Sampler) listTargets(ctx context.Context) ([]sandbox.Sandbox, []error) {
	if len(s.req.Words) > 0 {
		found, err := s.fleet.Find(ctx, s.req.Words, fleet.FindOptions{Typed: append([]string{}, s.req.Typed...)})
		if err != nil {
			return found, ops.Mistakes(err)
		}
		return found, nil
	}
	l := s.fleet.Collect(ctx, providers.Query{States: []sandbox.State{sandbox.StateRunning}, Live: s.req.Live})
	return slices.DeleteFunc(l.Items, func(b sandbox.Sandbox) bool { return b.State != sandbox.StateRunning }), l.Errors
}

// sampleTargets adds the next samples of each target to the past ones and gives the
// last error of each.
func (s *Sampler) sampleTargets(ctx context.Context, targets []sandbox.Sandbox, progress ops.Progress) map[sandbox.Ref]error {
	refs := make([]sandbox.Ref, len(targets))
	rounds := 1
	for i, t := range targets {
		refs[i] = t.Ref()
		if t.State == sandbox.StateRunning {
			rounds = max(rounds, s.req.Samples-len(s.past[refs[i]]))
		}
	}
	failed := map[sandbox.Ref]error{}
	if len(refs) == 0 {
		return failed
	}
	n := 1
	progress.Update(fmt.Sprintf("1 of %d", rounds))
	for round := range s.fleet.Samples(ctx, refs, rounds, s.req.Every) {
		for _, sample := range round.Samples {
			if failed[sample.Ref] = sample.Err; sample.Err == nil {
				s.samplesKept(sample)
			}
		}
		n++
		progress.Update(fmt.Sprintf("%d of %d", min(n, rounds), rounds))
	}
	return failed
}

// samplesKept never holds less than two samples, so that rates are known from the second look on.
func (s *Sampler) samplesKept(sample fleet.Sample) {
	samples := append(s.past[sample.Ref], sample.Usage)
	s.past[sample.Ref] = samples[max(0, len(samples)-max(2, s.req.Samples)):]
}

// vanishedUnnamed says that a sandbox which the user did not name has ended between two looks,
// which is no failure.
func (s *Sampler) vanishedUnnamed(err error) bool {
	kind := fault.KindOf(err)
	return len(s.req.Words) == 0 && (kind == fault.KindGone || kind == fault.KindNotFound)
}

// compareByCPU sorts by falling cpu, unknown values last.
func compareByCPU(a, b SandboxUsage) int {
	cpu := func(u SandboxUsage) float64 {
		if u.Trend.CPUPercent == nil {
			return -1
		}
		return *u.Trend.CPUPercent
	}
	return cmp.Or(cmp.Compare(cpu(b), cpu(a)), cmp.Compare(a.Sandbox.Ref().String(), b.Sandbox.Ref().String()))
}

// withoutDuplicates says a thing once that is true of many sandboxes, such as an
// ability that their provider lacks.
func withoutDuplicates(errs []error) []error {
	var out []error
	for _, err := range errs {
		if !slices.ContainsFunc(out, func(o error) bool { return o.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return out
}
