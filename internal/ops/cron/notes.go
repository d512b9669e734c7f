package cron

import (
	"context"
	"maps"
	"slices"

	"sbx/internal/check"
	"sbx/internal/cron"
	"sbx/internal/history"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// defaultNotes are the notes on default limits by what is on record; no provider is asked.
func defaultNotes(ctx context.Context, e *ops.Env) (notes []string) {
	st, err := e.Store(false)
	if err != nil {
		return nil // it is a note alone
	}
	defer func() { _ = st.Close() }() // nothing was written
	names, _ := e.SelectedNames()
	for _, name := range names {
		s := e.NewAlertSubject(name)
		counts, err := ops.ActiveCounts(ctx, st, name, e.Now().Add(-history.Rules().Keep))
		if err != nil || len(counts) == 0 {
			continue
		}
		s.Figures.Active, s.Figures.OverFor = &counts[len(counts)-1].Active, triage.NewOverFor(counts, s.Limits, e.Now())
		if note := check.ActiveOver().DefaultNote(&s.Subject); note != "" {
			notes = append(notes, name+": "+note)
		}
	}
	return notes
}

// notifyOverdue notifies people of each layer that should have run and did not.
func notifyOverdue(ctx context.Context, e *ops.Env, watch ops.Reporter, statuses []cron.Status) {
	for _, s := range statuses {
		key := "cron " + string(s.Layer)
		e.FollowRun(ctx, watch, notify.Message{Verb: "cron", Host: e.Process.Host, Key: key}, s.Verdict.Negated())
		if s.Verdict != sandbox.False {
			continue
		}
		what := " leaves stuck sandboxes on "
		if s.Overdue {
			what = " is overdue on "
		}
		m := notify.Message{
			Verb: "cron", Host: e.Process.Host, Kind: notify.KindOverdue, Key: key,
			Title: "sbx layer " + string(s.Layer) + what + e.Process.Host, Text: s.Message + "; expected every " + sandbox.FormatDuration(s.Every),
			Figures: map[string]float64{"expected every, seconds": s.Every.Seconds()}, At: e.Now(),
			Providers: slices.Sorted(maps.Keys(s.Unowned)), Next: NextForLayer(e, s),
		}
		e.SendLater(watch, func(ctx context.Context, n *notify.Notifier) error {
			_, err := e.Send(ctx, n, m, nil)
			return err
		})
	}
}

// NextForLayer is what a person types next about a layer that does not do its work.
func NextForLayer(e *ops.Env, s cron.Status) []string {
	program := e.Process.Name()
	next := []string{program + " cron check", program + " cleanup runs"}
	if len(s.Unowned) > 0 {
		next = append(next, program+" ls --stuck")
	}
	return next
}
