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

// again runs one cleanup after the other until it is interrupted, which is how it is
// meant to end. A run that fails is told of and does not end the others.
func (r *cleanupRun) again(ctx context.Context, p *output.Printer, next func() (*cleanupRun, error)) error {
	if err := p.Format.Refuse("cleanup --every", output.Documents()...); err != nil {
		return err
	}
	shown, err := r.listen(ctx, p)
	if err != nil {
		return err
	}
	pace := time.NewTicker(r.every)
	defer pace.Stop()
	for {
		began := time.Now()
		err := r.run(ctx, p)
		if cause := ended(ctx, err); cause != nil {
			return cause
		}
		code := fault.ExitCode(err)
		shown.set(r.figures(ctx, code, time.Since(began), false).Set())
		p.Note(fmt.Sprintf("%s ended with exit code %d; the next one comes within %s", r.id, code, r.every))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pace.C:
		}
		if r, err = next(); err != nil {
			return err
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

// listen answers /metrics, if an address was named.
func (r *cleanupRun) listen(ctx context.Context, p *output.Printer) (*board, error) {
	shown := &board{}
	if r.o.listen == "" {
		return shown, nil
	}
	l, err := metrics.Listen(ctx, r.o.listen)
	if err != nil {
		return nil, err
	}
	p.Note("answering at http://" + l.Addr().String() + "/metrics")
	go func() {
		if err := metrics.Serve(ctx, l, shown.get); err != nil {
			p.Warn(err.Error())
		}
	}()
	return shown, nil
}
