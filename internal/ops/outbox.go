package ops

import (
	"context"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/notify"
	"sbx/internal/task"
)

// outbox holds the notifications of operations until the answer of the verb is shown: a service
// that hangs delays no answer.
type outbox struct {
	mu  sync.Mutex
	due []outgoing
	// tasks are those that failed, of which one of due tells.
	tasks []task.Task
	// warned are the warnings since the last sending, warnedBefore those of the time before it.
	warned, warnedBefore []string
}

// outgoing is one notification. A failure is a warning to its observer.
type outgoing struct {
	watch Reporter
	send  func(ctx context.Context, n *notify.Notifier) error
}

// SendLater keeps a notification for SendNotifications.
func (e *Env) SendLater(watch Reporter, send func(ctx context.Context, n *notify.Notifier) error) {
	e.outbox.mu.Lock()
	defer e.outbox.mu.Unlock()
	e.outbox.due = append(e.outbox.due, outgoing{watch, send})
}

// SendNotifications sends what operations have to tell watchdogs and people, all at once. A skin
// calls it when it has shown the answer, and PauseRound after each round of a verb that repeats.
// It takes no longer than two calls of the services and two of the store (notify.Limit,
// alert.StoreLimit), and some seconds once ctx has ended. A failure is a warning.
func (e *Env) SendNotifications(ctx context.Context) {
	due := e.takeDue()
	if len(due) == 0 {
		return
	}
	n, err := e.Notifier("")
	if err != nil {
		e.WarnNew(due[0].watch, err)
	}
	defer n.Close()
	errs := make([]error, len(due))
	var sending sync.WaitGroup
	for i, one := range due {
		sending.Go(func() { errs[i] = one.send(ctx, n) })
	}
	sending.Wait()
	for i, one := range due {
		if errs[i] != nil {
			e.WarnNew(one.watch, errs[i])
		}
	}
}

// Send sends a message, to some of the services where only names them, and keeps on record who got it.
func (e *Env) Send(ctx context.Context, n *notify.Notifier, m notify.Message, only []string) ([]string, error) {
	failed, err := n.SendTo(ctx, m, only)
	to := slices.DeleteFunc(n.Receivers(m), func(name string) bool { return len(only) > 0 && !slices.Contains(only, name) })
	e.keepMessage(m, to, failed, err)
	return failed, err
}

// warnUnreachable warns of services that could not be reached if there were something to send.
func (e *Env) warnUnreachable(watch Reporter) {
	n, err := e.Notifier("")
	if err != nil {
		e.WarnNew(watch, err)
	}
	n.Close()
}

func (e *Env) takeDue() []outgoing {
	o := &e.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	due := o.due
	o.due, o.warned, o.warnedBefore = nil, nil, o.warned
	return due
}

// WarnNew warns of something that goes on in every round of a verb: once, and again where it was
// over for a round.
func (e *Env) WarnNew(watch Reporter, err error) {
	text := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += "; " + hint
	}
	o := &e.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	said := slices.Contains(o.warned, text)
	if !said {
		o.warned = append(o.warned, text)
	}
	if !said && !slices.Contains(o.warnedBefore, text) {
		watch.Warn(text)
	}
}

// sendEvery is how long a verb of many tasks may keep a notification.
const sendEvery = time.Minute

// SendMeanwhile sends every minute until stop is called, for a verb that runs for hours.
func (e *Env) SendMeanwhile(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() {
		pace := time.NewTicker(sendEvery)
		defer pace.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
				e.SendNotifications(ctx)
			}
		}
	})
	return func() {
		cancel()
		sending.Wait()
	}
}

// PauseRound waits for the next round of a verb that repeats, and sends meanwhile. The error is
// what ended ctx.
func (e *Env) PauseRound(ctx context.Context, next <-chan time.Time) error {
	var sending sync.WaitGroup
	sending.Go(func() { e.SendNotifications(ctx) })
	select {
	case <-ctx.Done():
	case <-next:
	}
	sending.Wait()
	return context.Cause(ctx)
}
