package end

import (
	"context"
	"errors"
	"time"

	"sbx/internal/alert"
	"sbx/internal/fault"
	"sbx/internal/metrics"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// runReport is what a run that acts, or checks, tells others: watchdogs, people, and Prometheus.
type runReport struct {
	verb, id string
	ping     string // address of the watchdog; "" = as configured
	noPing   bool   // the configured watchdog is that of another verb
	textfile string // "" = none
	summary  func(err error) string
	message  func(what notify.Kind, err error) notify.Message
	subjects func(ctx context.Context) []ops.AlertSubject
	figures  func(ctx context.Context, code int, took time.Duration) metrics.Set
	labels   []metrics.Label // of every figure
}

// reportRun runs do and reports the result: what costs no service at once, the rest by
// SendNotifications. A report that cannot be delivered is a warning. A run that another one held up
// says nothing: the one that holds the lock speaks for itself.
func reportRun(ctx context.Context, e *ops.Env, watch ops.Reporter, r runReport, do func() error) error {
	pingEnd := startPing(ctx, e, watch, r)
	began := time.Now()
	err := do()
	took, kind := time.Since(began), fault.KindOf(err)
	if kind == fault.KindLocked {
		pingEnd(nil)
		return err
	}
	summary := r.summary(err)
	pingEnd(func(ctx context.Context, n *notify.Notifier) error {
		return n.PingEnd(ctx, r.id, fault.ExitCode(err), summary)
	})
	what, tell := notify.KindFor(kind)
	switch m := r.message(what, err); {
	case tell:
		e.SendLater(watch, func(ctx context.Context, n *notify.Notifier) error {
			_, err := e.Send(ctx, n, m, nil)
			return err
		})
		e.FollowRun(ctx, watch, m, sandbox.True)
	case err == nil:
		e.FollowRun(ctx, watch, m, sandbox.False)
	}
	alerts := e.EvaluateAlerts(ctx, watch, r.verb, r.id, r.subjects(ctx))
	lost := e.WriteTextfile(r.textfile, func() metrics.Set {
		set := r.figures(ctx, fault.ExitCode(err), took)
		set.AddAlerts(alertFigures(alerts), r.labels...)
		return set
	})
	if lost != nil {
		watch.Warn(lost.Error())
	}
	return err
}

// startPing tells the watchdog of a run that it begins, beside the run. The func has it told of the
// end, after that; nil = of none.
func startPing(ctx context.Context, e *ops.Env, watch ops.Reporter, r runReport) func(end func(context.Context, *notify.Notifier) error) {
	if r.noPing {
		return func(func(context.Context, *notify.Notifier) error) {}
	}
	n, err := e.Notifier(r.ping)
	if err != nil {
		e.WarnNew(watch, err)
	}
	started := make(chan error, 1)
	go func() { started <- n.PingStart(ctx, r.id) }()
	return func(end func(context.Context, *notify.Notifier) error) {
		e.SendLater(watch, func(ctx context.Context, _ *notify.Notifier) error {
			defer n.Close()
			err := <-started
			if end != nil {
				err = errors.Join(err, end(ctx, n))
			}
			return err
		})
	}
}

// alertFigures are the alerts of which it is known whether they fire.
func alertFigures(all []alert.Alert) []metrics.Alert {
	var figures []metrics.Alert
	for _, a := range all {
		if firing := a.State.Phase == alert.Firing; firing || a.Verdict == sandbox.True || a.Verdict == sandbox.False {
			figures = append(figures, metrics.Alert{Rule: a.Rule.ID, Provider: a.Provider, Severity: string(a.Rule.Severity), Firing: firing})
		}
	}
	return figures
}
