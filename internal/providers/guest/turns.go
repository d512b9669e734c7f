package guest

import (
	"context"
	"sync"
)

// Turns keeps the scripts of one client out of a sandbox while its use of resources is measured: their
// cost would count as work of the sandbox. The zero value is ready to use.
type Turns struct {
	all sync.Map // id of a sandbox -> *turn
}

// scriptsAtOnce is how many scripts of sbx may run in one sandbox at once.
const scriptsAtOnce = 16

type turn struct {
	measuring chan struct{} // has an item while one measures, or waits until it can
	scripts   chan struct{} // has an item for each script that runs; one that measures fills it
}

func (t *Turns) of(id string) *turn {
	one, _ := t.all.LoadOrStore(id, &turn{make(chan struct{}, 1), make(chan struct{}, scriptsAtOnce)})
	return one.(*turn) //nolint:forcetypeassert,errcheck // it holds nothing else
}

// Script is sh for the scripts of a sandbox: they run beside each other and beside no measurement.
func (t *Turns) Script(id string, sh Shell) Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) {
		one := t.of(id)
		if err := take(ctx, one.scripts, 1); err != nil {
			return nil, -1, err
		}
		defer give(one.scripts, 1)
		return sh(ctx, text)
	}
}

// Measurement is sh for Usage: it waits for the scripts that run, and new ones wait for it.
func (t *Turns) Measurement(id string, sh Shell) Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) {
		one := t.of(id)
		if err := take(ctx, one.measuring, 1); err != nil {
			return nil, -1, err
		}
		defer give(one.measuring, 1)
		if err := take(ctx, one.scripts, scriptsAtOnce); err != nil {
			return nil, -1, err
		}
		defer give(one.scripts, scriptsAtOnce)
		return sh(ctx, text)
	}
}

// take puts n items into c, or none and returns why ctx has ended.
func take(ctx context.Context, c chan struct{}, n int) error {
	for i := range n {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
			give(c, i)
			return context.Cause(ctx)
		}
	}
	return nil
}

func give(c chan struct{}, n int) {
	for range n {
		<-c
	}
}
