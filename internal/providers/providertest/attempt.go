package providertest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Verdict is how one check went.
type Verdict struct {
	Failed   bool
	Skipped  bool
	Messages []string
}

// Attempt runs one check for its verdict, so that a test can plant a fault and
// see red. A panic counts as failed.
func Attempt(ctx context.Context, c Config, check Check) Verdict {
	return Record(ctx, func(t T) { perform(t, c, check) })
}

// Record runs f to its end, its cleanups included, and keeps what it says of T
// instead of ending a test. A panic counts as failed.
func Record(ctx context.Context, f func(t T)) Verdict {
	ctx, cancel := context.WithCancel(ctx)
	r := &recorder{ctx: func() context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.finish(cancel)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		f(r)
	}()
	<-done
	return r.v
}

// recorder is a T that keeps the verdict instead of ending a test.
type recorder struct {
	ctx      func() context.Context
	mu       sync.Mutex
	v        Verdict
	cleanups []func()
}

// Helper does nothing: a verdict has no line numbers.
func (r *recorder) Helper() {}

// Errorf marks the check failed.
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.v.Failed = true
	r.v.Messages = append(r.v.Messages, fmt.Sprintf(format, args...))
}

// FailNow marks the check failed and ends it.
func (r *recorder) FailNow() {
	r.mu.Lock()
	r.v.Failed = true
	r.mu.Unlock()
	runtime.Goexit()
}

// Skipf marks the check skipped and ends it.
func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	r.v.Skipped = true
	r.v.Messages = append(r.v.Messages, fmt.Sprintf(format, args...))
	r.mu.Unlock()
	runtime.Goexit()
}

// Cleanup keeps f for the end of the check, last in first out.
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Context ends before the cleanups run, as that of a test does.
func (r *recorder) Context() context.Context { return r.ctx() }

func (r *recorder) finish(cancel func()) {
	cancel()
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}
