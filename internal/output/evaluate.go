package output

import (
	"bytes"
	"context"
	"runtime/metrics"
	"time"

	"sbx/internal/fault"
)

// What a jq expression or a template may cost.
const (
	maxRendered = 128 << 20 // bytes of output
	maxResults  = 1_000_000 // values of a jq expression
	maxMemory   = 1 << 30   // bytes of the heap beyond what it was before
	memoryEvery = 50 * time.Millisecond
	// afterEnd is how long an evaluation goes on after its context has ended, so that
	// an interrupted command still prints the document of what it has.
	afterEnd = 500 * time.Millisecond
)

const hintCost = "see the document with -o json, and narrow the expression"

// evaluateWithin runs what the operator wrote over a document. It returns the cause of
// ctx soon after that ends, and fault.KindUsage where the heap grows by more than
// that many bytes; the context of compute ends then, and what does not look at it is
// abandoned.
func evaluateWithin(ctx context.Context, memory uint64, compute func(context.Context) ([]byte, error)) ([]byte, error) {
	type result struct {
		out []byte
		err error
	}
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan result, 1)
	most := heapBytes() + memory
	go func() {
		out, err := compute(inner)
		done <- result{out, err}
	}()
	look := time.NewTicker(memoryEvery)
	defer look.Stop()
	ended, last := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case r := <-done:
			return r.out, r.err
		case <-ended:
			ended, last = nil, time.After(afterEnd)
		case <-last:
			return nil, context.Cause(ctx)
		case <-look.C:
			if heapBytes() > most {
				return nil, fault.Usage("the expression needs more than %d MiB of memory", memory>>20).WithHint(hintCost)
			}
		}
	}
}

// heapBytes is how many bytes the objects of this process take.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// bounded is a buffer that takes no more than maxRendered bytes, and nothing after
// the end of ctx.
type bounded struct {
	bytes.Buffer

	done <-chan struct{}
}

// Write refuses what exceeds the bound.
func (b *bounded) Write(p []byte) (int, error) {
	select {
	case <-b.done:
		return 0, context.Canceled
	default:
	}
	if b.Len()+len(p) > maxRendered {
		return 0, errRendered()
	}
	return b.Buffer.Write(p)
}

func errRendered() error {
	return fault.Usage("the expression gives more than %d MiB", maxRendered>>20).WithHint(hintCost)
}
