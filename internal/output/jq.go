package output

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/big"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"sbx/internal/fault"
)

// parseQuery compiles a jq expression. It sees no environment, no files and no
// other input than the document.
func parseQuery(text string) (*gojq.Code, error) {
	refuse := func(err error) (*gojq.Code, error) {
		return nil, fault.Usage("bad jq expression: %s", Escape(strings.Replace(err.Error(), "unexpected EOF", "it ends too early", 1))).
			WithHint("jq reads the JSON document: jq='.items[].ref'")
	}
	parsed, err := gojq.Parse(text)
	if err != nil {
		return refuse(err)
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return refuse(err)
	}
	return code, nil
}

// runQuery runs the expression over the document and prints one result per line:
// strings as they are, everything else as compact JSON. A failure of the
// expression, and one that gives too much, is fault.KindUsage and gives no output at
// all.
func runQuery(ctx context.Context, code *gojq.Code, document Fields) ([]byte, error) {
	var out []byte
	results := code.RunWithContext(ctx, forQuery(document))
	for n := 0; ; n++ {
		v, more := results.Next()
		if !more {
			return out, nil
		}
		if err, failed := v.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return out, nil
			}
			return nil, fault.Usage("jq: %s", Escape(err.Error())).WithHint("see the document with -o json")
		}
		if out = append(appendResult(out, v), '\n'); len(out) > maxRendered {
			return nil, errRendered()
		}
		if n == maxResults {
			return nil, fault.Usage("jq: more than %d results", maxResults).WithHint(hintCost)
		}
	}
}

func appendResult(out []byte, v any) []byte {
	if s, ok := v.(string); ok {
		return append(out, EscapeBlock(s)...)
	}
	return appendJSON(out, fromQuery(v), compact)
}

func forQuery(document Fields) any {
	return plainValue(document, func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }, func(f float64) any { return f })
}

// fromQuery gives back the types that appendJSON knows; integers beyond 64 bits
// become floats.
func fromQuery(v any) any {
	switch v := v.(type) {
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fromQuery(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = fromQuery(e)
		}
		return shapeValue(out)
	}
	return shapeValue(v)
}

// plainValue turns a shaped value into the maps and lists that templates and jq
// walk; text changes every string in it, keys included, and fraction every number with a fraction.
func plainValue(v any, text func(string) string, fraction func(float64) any) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case float64:
		return fraction(v)
	case int64:
		return int(v)
	case uint64:
		if v > math.MaxInt { // jq panics on unsigned numbers
			return fraction(float64(v))
		}
		return int(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainValue(e, text, fraction)
		}
		return out
	case Fields:
		out := make(map[string]any, len(v))
		for _, f := range v {
			out[text(f.Key)] = plainValue(f.Value, text, fraction)
		}
		return out
	}
	return v
}

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
	return fault.Usage("the expression produces more than %d MiB", maxRendered>>20).WithHint(hintCost)
}
