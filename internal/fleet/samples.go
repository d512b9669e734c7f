package fleet

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Sample is the usage of one sandbox in one round.
type Sample struct {
	Ref   sandbox.Ref
	Usage sandbox.Usage
	Err   error
}

// Round is one sample of each sandbox, in the requested order.
type Round struct {
	At      time.Time
	Samples []Sample
}

// Samples reads n rounds of usage, interval apart from start to start; n = 0 continues until
// ctx ends or the consumer stops. A round that takes longer than the interval delays the
// next one. Where a provider reports only cumulative CPU seconds, CPUPercent is computed
// from two rounds. A sandbox that was silent in one round is not asked again: the silence
// would cost the provider's time limit each time.
func (f *Fleet) Samples(ctx context.Context, refs []sandbox.Ref, n int, interval time.Duration) iter.Seq[Round] {
	return func(yield func(Round) bool) {
		var last []Sample
		for i := 0; n == 0 || i < n; i++ {
			began := time.Now()
			round := f.sampleRound(ctx, refs, last)
			if ctx.Err() != nil {
				return
			}
			for j := range last {
				deriveCPU(last[j], &round.Samples[j])
			}
			last = round.Samples
			if !yield(round) || i+1 == n || poll.Sleep(ctx, interval-time.Since(began)) != nil {
				return
			}
		}
	}
}

func (f *Fleet) sampleRound(ctx context.Context, refs []sandbox.Ref, last []Sample) Round {
	samples := make([]Sample, len(refs))
	var items []sandbox.Sandbox
	var asked []int // the sample of each item
	for i, ref := range refs {
		samples[i].Ref = ref
		if len(last) > 0 && fault.SettlesLook(last[i].Err) {
			samples[i].Err = last[i].Err
			continue
		}
		items, asked = append(items, sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID, State: sandbox.StateRunning}), append(asked, i)
	}
	one := func(ctx context.Context, i int) {
		samples[asked[i]].Usage, samples[asked[i]].Err = f.Usage(ctx, items[i].Ref())
	}
	switch {
	case len(items) == 0:
	case len(refs) == 1: // the reader of many knows less of one
		one(ctx, 0)
	default:
		f.forEachUnread(ctx, items, func(i int, u sandbox.Usage) bool { samples[asked[i]].Usage = u; return true }, one)
	}
	return Round{At: f.o.Now(), Samples: samples}
}

// deriveCPU computes CPUPercent, of one core, from the CPU seconds of two samples. A counter
// that decreased (the sandbox was restarted) gives none.
func deriveCPU(before Sample, now *Sample) {
	u := &now.Usage
	if before.Err != nil || now.Err != nil || u.CPUPercent != nil || u.CPUSeconds == nil || before.Usage.CPUSeconds == nil {
		return
	}
	took := u.At.Sub(before.Usage.At).Seconds()
	used := *u.CPUSeconds - *before.Usage.CPUSeconds
	if took > 0 && used >= 0 {
		u.CPUPercent = new(100 * used / took)
	}
}

// readSamples takes two samples of a running sandbox, for rates, and one of any other.
// Where memory may be filling up, it continues until the samples span enough time.
//
// Where the log does not capture the output, usage is the only evidence of work: then it
// prefers the samples that the provider stores.
func (f *Fleet) readSamples(ctx context.Context, s sandbox.Sandbox, captured bool, samples []sandbox.Usage) Part[[]sandbox.Usage] {
	if !captured && s.State == sandbox.StateRunning {
		if kept, err := f.UsageHistory(ctx, s.Ref(), f.o.Now().Add(-f.o.Thresholds(s).BusySilence-longestStep)); err == nil && len(kept) > 1 {
			return Part[[]sandbox.Usage]{Got: kept}
		} else if fault.SettlesLook(err) {
			return Part[[]sandbox.Usage]{Err: err}
		}
	}
	if len(samples) > 0 {
		return Part[[]sandbox.Usage]{Got: f.extendSamples(ctx, s.Ref(), samples)}
	}
	n := 1
	if s.State == sandbox.StateRunning {
		n = 2
	}
	var p Part[[]sandbox.Usage]
	for round := range f.Samples(ctx, []sandbox.Ref{s.Ref()}, n, f.o.Sample) {
		if p.Err = round.Samples[0].Err; p.Err != nil {
			return p
		}
		p.Got = append(p.Got, round.Samples[0].Usage)
	}
	if len(p.Got) < n {
		p.Err = context.Cause(ctx)
		return p
	}
	if p.Err = f.checkFresh(s.Ref(), p.Got[len(p.Got)-1]); p.Err != nil {
		return p
	}
	p.Got = f.extendSamples(ctx, s.Ref(), p.Got)
	return p
}

// extendSamples adds samples while memory may be filling up and they span too little time.
// It stops when a read fails.
func (f *Fleet) extendSamples(ctx context.Context, ref sandbox.Ref, got []sandbox.Usage) []sandbox.Usage {
	for triage.NeedsLongerLook(got) && poll.Sleep(ctx, extendInterval) == nil {
		usage, err := f.Usage(ctx, ref)
		if err != nil || !usage.At.After(got[len(got)-1].At) { // a source that repeats one sample would be read without end
			return got
		}
		got = append(got, usage)
	}
	return got
}
