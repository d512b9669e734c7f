package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/metrics"
	"sbx/internal/notify"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// withNotifications runs do, which acts, and reports the result.
func (r *cleanupRun) withNotifications(ctx context.Context, do func() error) error {
	return r.env.reportRun(ctx, r.watch, runReport{
		verb: VerbCleanup, id: r.id, ping: r.req.Ping, textfile: r.req.Textfile, labels: metrics.Cleanup{Layer: r.metricSeries()}.Labels(),
		summary: r.runSummary, message: r.runMessage, subjects: r.alertSubjects,
		figures: func(ctx context.Context, code int, took time.Duration) metrics.Set {
			return r.runFigures(ctx, code, took, false).Set()
		},
	}, do)
}

func (r *cleanupRun) runSummary(err error) string {
	parts := []string{fmt.Sprintf("%s: %d of %d sandboxes selected; %s", r.id, len(r.survey.Selected), len(r.survey.Selected)+len(r.survey.Kept), CountsText(fleet.Count(r.endings)))}
	if err != nil {
		parts = append(parts, err.Error())
	}
	if text := r.unownedText(); text != "" {
		parts = append(parts, text)
	}
	for _, e := range r.survey.Errs() {
		parts = append(parts, e.Error())
	}
	return strings.Join(parts, "\n")
}

// runFigures are those of this run. When a profile was last in order comes from the
// journals, which a dry or refused run cannot move.
func (r *cleanupRun) runFigures(ctx context.Context, code int, took time.Duration, dry bool) metrics.Cleanup {
	runs, _ := r.env.Histories(ctx, VerbCleanup, statusRuns) // what cannot be read counts as never: the alert fires
	m := metrics.Cleanup{
		Build: r.env.build(),
		Layer: r.metricSeries(), ExitCode: code, DurationSeconds: took.Seconds(), Dry: dry, Refused: code == fault.ExitCode(fault.New(fault.KindRefused, "")),
	}
	for _, share := range r.survey.Shares {
		m.Profiles = append(m.Profiles, r.profileFigures(share, r.profileStatus(runs, share.Profile)))
	}
	return m
}

func (r *cleanupRun) profileFigures(share cleanup.Share, status cron.Status) metrics.ProfileFigures {
	f := metrics.ProfileFigures{
		Profile: share.Profile, LastSuccess: status.LastSuccess, LastRun: status.LastRun, Complete: share.Err == nil, Candidates: share.Selected,
		Outcomes: map[string]int{}, Kept: map[string]int{},
	}
	for _, g := range cleanup.KeepReasons() {
		f.Kept[string(g)] = 0 // a rate over a series that appears late misses its first step
	}
	mine := func(s sandbox.Sandbox) bool { return s.Provider == share.Profile }
	for _, j := range slices.Concat(r.survey.Selected, r.survey.Kept) {
		if age, source := j.Sandbox.Age(r.survey.At); mine(j.Sandbox) && source != sandbox.AgeUnknown {
			f.Ages = append(f.Ages, age)
			if j.Selected() && (f.OldestEligibleSeconds == nil || age.Seconds() > *f.OldestEligibleSeconds) {
				f.OldestEligibleSeconds = new(age.Seconds())
			}
		}
		if mine(j.Sandbox) && j.KeepReason == cleanup.KeepAgeUnknown {
			f.KeptUnknownAge++
		}
	}
	for _, j := range r.survey.Kept {
		if mine(j.Sandbox) {
			f.Kept[string(j.KeepReason)]++
		}
	}
	for _, e := range r.endings {
		if e.Ref.Provider == share.Profile {
			f.Outcomes[string(e.Outcome)]++
		}
	}
	f.Unverified = f.Outcomes[string(sandbox.OutcomeAccepted)] + f.Outcomes[string(sandbox.OutcomeStuck)]
	return f
}

// WriteDryTextfile writes the figures of a plan, if the request named a file.
func (r *CleanupResult) WriteDryTextfile(ctx context.Context, code int) error {
	return r.run.env.writeTextfile(r.run.req.Textfile, func() metrics.Set { return r.run.runFigures(ctx, code, 0, true).Set() })
}

// shareSightings lets the rule read when an earlier run first saw a sandbox without an age.
func (r *cleanupRun) shareSightings(ctx context.Context) {
	first := r.env.Sightings(ctx, r.watch, sightFirst)
	r.world.FirstSeen = func(s sandbox.Sandbox) time.Time { return first()[s.Ref().String()].First }
}

// recordSightings stores when sandboxes without an age were first seen, for later runs. Only a run
// that may act does so.
func (r *cleanupRun) recordSightings(ctx context.Context) {
	var ageless []string
	for _, j := range slices.Concat(r.survey.Selected, r.survey.Kept) {
		if _, source := j.Sandbox.Age(r.survey.At); source == sandbox.AgeUnknown || source == sandbox.AgeFirstSeen {
			ageless = append(ageless, j.Sandbox.Ref().String())
		}
	}
	if len(ageless) == 0 {
		return
	}
	r.env.writeStore(ctx, r.watch, true, func(ctx context.Context, st store.Store) error {
		for _, ref := range ageless {
			if _, err := st.Sight(ctx, sightFirst, ref, r.env.Now(), time.Second); err != nil {
				return err
			}
		}
		return nil
	})
}

// notifyOverdue notifies people of each layer that should have run and did not.
func (e *Env) notifyOverdue(ctx context.Context, watch Reporter, statuses []cron.Status) {
	for _, s := range statuses {
		key := "cron " + string(s.Layer)
		e.followRun(ctx, watch, notify.Message{Verb: "cron", Host: e.Process.Host, Key: key}, troubleOf(s.Verdict))
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
			Providers: slices.Sorted(maps.Keys(s.Unowned)), Next: e.nextForLayer(s),
		}
		e.sendLater(watch, func(ctx context.Context, n *notify.Notifier) error {
			_, err := e.send(ctx, n, m, nil)
			return err
		})
	}
}

// nextForLayer is what a person types next about a layer that does not do its work.
func (e *Env) nextForLayer(s cron.Status) []string {
	program := e.Process.Name()
	next := []string{program + " cron check", program + " cleanup runs"}
	if len(s.Unowned) > 0 {
		next = append(next, program+" ls --stuck")
	}
	return next
}
