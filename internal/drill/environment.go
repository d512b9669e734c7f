package drill

import (
	"context"
	"time"

	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/lock"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

// compression is the factor by which every time limit of the runbook is shortened in a
// drill: ten minutes become five seconds.
const compression = 120

// leastInactivity is the silence that proves something on a machine that is busy: a healthy program
// that gets no processor for half a second must not end.
const leastInactivity = 2 * time.Second

func stagedThresholds() triage.Thresholds {
	t := triage.DefaultThresholds().Scaled(1.0 / compression)
	t.Inactivity = max(t.Inactivity, leastInactivity)
	return t
}

// stagedEnv is the environment of a drill: its operations see, judge and end what this run has staged
// and nothing else. Nobody is notified, and no check takes its cleanup for one of the
// machine. What it ends is audited as everything else, and the run of the runbook is on record.
func (d *drillRun) stagedEnv(all *fleet.Fleet) (*ops.Env, *fleet.Fleet, error) {
	c, err := d.Env.Config()
	if err != nil {
		return nil, nil, err
	}
	run := d.report.Run
	f := all.Restrict(func(s sandbox.Sandbox) bool { return s.Labels[drillLabel] == run }, d.thresholds)
	staged := c.Staged(d.profile, map[string]string{drillLabel: run}, len(d.staging.scenes), d.thresholds)
	memory, from := store.Memory(d.Env.Now), d.Env
	env := &ops.Env{
		Process: from.Process, Version: from.Version, Types: from.Types, Input: from.Input, Program: from.Program,
		Config: func() (*config.Config, error) { return staged, nil },
		Fleet:  func(context.Context) (*fleet.Fleet, error) { return f, nil },
		Only:   func(_ context.Context, names ...string) (*fleet.Fleet, error) { return f.Narrow(names) },
		Store:  func(bool) (store.Store, error) { return memory, nil },

		Journals: from.Endings, Endings: from.Endings, RunbookRuns: from.RunbookRuns, LockRunbookRun: from.LockRunbookRun,

		Shared: func() (store.Store, error) { return nil, nil }, //nolint:nilnil // it shares none
		Lock: func(ctx context.Context, _ lock.Holder, _ time.Duration) (context.Context, func() error, error) {
			return ctx, func() error { return nil }, nil // it acts on nothing that another run could see
		},
		Notifier: func(string) (*notify.Notifier, error) { return &notify.Notifier{}, nil },
		Control:  func() (ops.ControlPlane, error) { return nil, nil }, //nolint:nilnil // it has none
		Tasks:    from.Tasks, Alive: from.Alive, PushTarget: from.PushTarget, Background: from.Background,
	}
	return env, f, nil
}
