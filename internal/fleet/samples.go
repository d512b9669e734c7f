package fleet

import (
	"context"
	"iter"
	"sync"
	"time"

	"sbx/internal/sandbox"
)

// Sample is one sandbox's figures in one round.
type Sample struct {
	Ref   sandbox.Ref
	Usage sandbox.Usage
	Err   error
}

// Round is one sample of each sandbox, in the order that was asked for.
type Round struct {
	At      time.Time
	Samples []Sample
}

// Samples reads n rounds of usage, interval apart from start to start; n = 0
// goes on until ctx ends or the consumer stops. A round that takes longer than
// the interval delays the next one. Where a provider reports only cumulative
// CPU seconds, CPUPercent is worked out from two rounds.
func (f *Fleet) Samples(ctx context.Context, refs []sandbox.Ref, n int, interval time.Duration) iter.Seq[Round] {
	return func(yield func(Round) bool) {
		var last []Sample
		for i := 0; n == 0 || i < n; i++ {
			began := time.Now()
			round := f.round(ctx, refs)
			if ctx.Err() != nil {
				return
			}
			for j := range last {
				derive(last[j], &round.Samples[j])
			}
			last = round.Samples
			if !yield(round) || i+1 == n || !wait(ctx, interval-time.Since(began)) {
				return
			}
		}
	}
}

func (f *Fleet) round(ctx context.Context, refs []sandbox.Ref) Round {
	r := Round{At: f.o.Now(), Samples: make([]Sample, len(refs))}
	var wg sync.WaitGroup
	for i, ref := range refs {
		wg.Go(func() {
			usage, err := f.Usage(ctx, ref)
			r.Samples[i] = Sample{Ref: ref, Usage: usage, Err: err}
		})
	}
	wg.Wait()
	return r
}

// derive fills CPUPercent, of one core, from the seconds used between two
// samples. A counter that went back (the sandbox was started anew) gives none.
func derive(before Sample, now *Sample) {
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

// wait lets d pass; false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
