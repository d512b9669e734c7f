package cli

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"sbx/internal/fault"
	"sbx/internal/process"
)

// signalWatch turns signals into the end of a context.
type signalWatch struct {
	stop        func()
	first       atomic.Value // the os.Signal that came
	acknowledge chan func(text string)
}

// acknowledgeAfter is how long a verb may take to end after an interrupt before the operator is told that it was heard.
const acknowledgeAfter = 300 * time.Millisecond

// watchSignals: the first signal ends the context with its name as the cause. What repeats it (process.DropRepeats) is
// dropped; the next decision ends the process at once, unless an operation has asked for signals itself and
// acknowledges them (ops.Env.OnInterrupts, while a task runs in this process). p's Signals tells so from now on.
func watchSignals(p *process.Process) (context.Context, *signalWatch) {
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // the root of every other context
	w := &signalWatch{stop: func() { cancel(nil) }, acknowledge: make(chan func(string), 1)}
	if p.Signals == nil {
		return ctx, w
	}
	watch := p.Signals
	signals, stop := watch()
	var others atomic.Int32
	p.Signals = func() (<-chan os.Signal, func()) {
		others.Add(1)
		c, done := watch()
		return c, func() {
			done()
			others.Add(-1)
		}
	}
	end := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			w.first.Store(s)
			cancel(signalFault(s))
		case <-end:
			return
		}
		select {
		case <-time.After(acknowledgeAfter):
		case <-end:
			return
		}
		if others.Load() == 0 {
			(<-w.acknowledge)("interrupted: ending what was begun; interrupt again to leave it as it is")
		}
		if process.DropRepeats(signals, end) {
			stop() // the next one has the system's own effect
		}
	}()
	w.stop = func() {
		close(end)
		stop()
		cancel(nil)
	}
	return ctx, w
}

// acknowledgeWith says how the operator is told that an interrupt was heard.
func (w *signalWatch) acknowledgeWith(say func(text string)) { w.acknowledge <- say }

func signalFault(s os.Signal) error {
	if s == syscall.SIGTERM {
		return fault.New(fault.KindTerminated, "interrupted by SIGTERM")
	}
	if s == syscall.SIGHUP {
		return fault.New(fault.KindCanceled, "the terminal was closed (SIGHUP)")
	}
	return fault.New(fault.KindCanceled, "interrupted")
}

// exitCode is the exit code of the signal that came, 0 without one.
func (w *signalWatch) exitCode() int {
	if s, came := w.first.Load().(os.Signal); came {
		return fault.ExitCode(signalFault(s))
	}
	return 0
}
