package end

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/metrics"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
)

// report is what this run tells others. The result is filled in by the run; it stays nil where
// nothing was compared. It pings only the address that was named: the configured one proves that
// cleanup runs, and must not be answered by another verb.
func (r *reconcileRun) report(result **ReconcileResult) runReport {
	ping, textfile := r.req.Ping, r.req.Textfile
	if !r.req.Fix && !r.req.Check { // the plan of a run that tells it itself
		ping, textfile = "", ""
	}
	return runReport{
		verb: runs.VerbReconcile, id: r.id, ping: ping, noPing: ping == "", textfile: textfile, labels: metrics.ReconcileLabels(),
		summary: func(err error) string { return r.summary(*result, err) },
		message: func(what notify.Kind, err error) notify.Message { return r.message(*result, what, err) },
		subjects: func(ctx context.Context) []ops.AlertSubject {
			if *result == nil {
				return nil
			}
			return r.alertSubjects(ctx, *result)
		},
		figures: func(_ context.Context, code int, took time.Duration) metrics.Set {
			return r.figures(*result, code, took)
		},
	}
}

func (r *reconcileRun) summary(result *ReconcileResult, err error) string {
	var parts []string
	if result != nil {
		parts = append(
			parts,
			fmt.Sprintf(
				"%s: %d of %d rows need attention; %s", r.id, result.Plan.CountNeedingAction(), len(result.Plan.Rows), ops.CountsText(fleet.Count(result.Endings)),
			),
		)
	}
	if err != nil {
		parts = append(parts, err.Error())
	}
	return strings.Join(parts, "\n")
}

func (r *reconcileRun) profiles() []string {
	var names []string
	for _, p := range r.config.Selected() {
		names = append(names, p.Name)
	}
	return names
}

// message names the rows that need an action and were not repaired.
func (r *reconcileRun) message(result *ReconcileResult, what notify.Kind, err error) notify.Message {
	program := r.env.Process.Name()
	m := notify.Message{
		Verb: runs.VerbReconcile, RunID: r.id, Host: r.env.Process.Host, Kind: what, Key: episodeKey(runs.VerbReconcile, r.profiles()), At: r.env.Now(),
		Text: r.summary(result, err), Figures: map[string]float64{"exit code": float64(fault.ExitCode(err))}, Next: []string{program + " reconcile"},
	}
	if result == nil {
		return m
	}
	repaired := endedRefs(result.Endings)
	for _, row := range result.Plan.Rows {
		if row.NeedsAction() && !repaired[row.Ref] {
			m.Items = append(m.Items, notify.Item{Ref: row.Ref.String(), Task: row.Box.TaskID, Outcome: string(row.Cause), Reason: row.Reason})
			m.Providers = append(m.Providers, row.Ref.Provider)
		}
	}
	slices.Sort(m.Providers)
	m.Providers = slices.Compact(m.Providers)
	m.Next = append(m.Next, program+" cleanup show "+r.id)
	return m
}

func (r *reconcileRun) figures(result *ReconcileResult, code int, took time.Duration) metrics.Set {
	m := metrics.Reconcile{Build: r.env.BuildInfo(), At: r.env.Now(), ExitCode: code, DurationSeconds: took.Seconds()}
	if result == nil {
		return m.Set()
	}
	for _, side := range result.Plan.Sides {
		f := metrics.ReconcileFigures{Profile: side.Profile, Rows: map[string]int{}}
		for _, class := range reconcile.Classes() {
			f.Rows[string(class)] = 0
		}
		for _, row := range result.Plan.Rows {
			if row.Ref.Provider != side.Profile {
				continue
			}
			if f.Rows[string(row.Class)]++; row.NeedsAction() {
				f.Found++
			}
		}
		m.Profiles = append(m.Profiles, f)
	}
	return m.Set()
}
