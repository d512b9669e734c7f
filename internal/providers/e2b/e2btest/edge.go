package e2btest

import (
	"context"
	"net/http"
	"sync"
)

// edge is what stands before envd. It loses each n-th stream, at another place each
// time: before the first byte, after the start event, after the first output.
// The process runs on, and its client sees a connection that was cut.
type edge struct {
	mu      sync.Mutex
	streams int
}

// lossy passes streams on as the edge does.
func (f *Fake) lossy(serve func(http.ResponseWriter, *http.Request, *box)) func(http.ResponseWriter, *http.Request, *box) {
	return func(w http.ResponseWriter, r *http.Request, b *box) {
		f.edge.mu.Lock()
		f.edge.streams++
		n := f.edge.streams
		f.edge.mu.Unlock()
		f.mu.Lock()
		every := f.o.LosesEvery
		f.mu.Unlock()
		if every <= 0 || n%every != 0 {
			serve(w, r, b)
			return
		}
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		serve(&cutting{ResponseWriter: w, left: n / every % 3, cut: cut}, r.WithContext(ctx), b)
		panic(http.ErrAbortHandler)
	}
}

// cutting lets some frames pass and drops what follows.
type cutting struct {
	http.ResponseWriter

	mu   sync.Mutex
	left int // frames that still pass
	cut  context.CancelFunc
}

// Write passes a frame on, or ends the stream.
func (c *cutting) Write(frame []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		c.cut()
		return len(frame), nil
	}
	c.left--
	return c.ResponseWriter.Write(frame)
}

// Unwrap is what http.ResponseController looks for.
func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }
