package commands

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/metrics"
	"sbx/internal/output"
)

// repeatCleanups runs one cleanup after the other until it is interrupted, which is its normal
// end. A failed run is reported and does not end the loop.
func (c *cleanupCommand) repeatCleanups(ctx context.Context) error {
	req, _, err := c.o.readRequest(c.cmd, c.d)
	if err != nil {
		return err
	}
	if err := c.p.Format.Refuse("cleanup --every", output.Documents()...); err != nil {
		return err
	}
	shown, err := c.serveMetrics(ctx)
	if err != nil {
		return err
	}
	pace := time.NewTicker(req.Every)
	defer pace.Stop()
	for {
		began := time.Now()
		result, err := c.runOnce(ctx)
		if cause := unshownCause(ctx, err); cause != nil {
			return cause
		}
		if result == nil { // flags or configuration are wrong, so each run would fail
			return err
		}
		code := fault.ExitCode(err)
		shown.set(result.Figures(ctx, code, time.Since(began)).Set())
		c.p.Note(fmt.Sprintf("%s ended with exit code %d; the next one comes within %s", result.RunID, code, req.Every))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pace.C:
		}
	}
}

// board holds the figures of the last run for whoever asks.
type board struct {
	mu  sync.Mutex
	now metrics.Set
}

func (b *board) set(s metrics.Set) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = s
}

func (b *board) get() metrics.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// serveMetrics answers /metrics, if an address was named.
func (c *cleanupCommand) serveMetrics(ctx context.Context) (*board, error) {
	shown := &board{}
	if c.o.listen == "" {
		return shown, nil
	}
	l, err := metrics.Listen(ctx, c.o.listen)
	if err != nil {
		return nil, err
	}
	c.p.Note("answering at http://" + l.Addr().String() + "/metrics")
	go func() {
		if err := metrics.Serve(ctx, l, shown.get); err != nil {
			c.p.Warn(err.Error())
		}
	}()
	return shown, nil
}
