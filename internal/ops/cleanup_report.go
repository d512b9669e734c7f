package ops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/alert"
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

// Figures are those of the run for machines. A dry one moves no time of a last success.
func (r *CleanupResult) Figures(ctx context.Context, code int, took time.Duration) metrics.Cleanup {
	return r.run.runFigures(ctx, code, took, false)
}

// WriteDryTextfile writes the figures of a plan, if the request named a file.
func (r *CleanupResult) WriteDryTextfile(ctx context.Context, code int) error {
	return r.run.env.writeTextfile(r.run.req.Textfile, func() metrics.Set { return r.run.runFigures(ctx, code, 0, true).Set() })
}

func (r *cleanupRun) shareSightings(ctx context.Context) {
	first, candidates := r.env.Sightings(ctx, r.watch, sightFirst), r.env.Sightings(ctx, r.watch, r.candidateKind())
	r.world.FirstSeen = func(s sandbox.Sandbox) time.Time { return first()[s.Ref().String()].First }
	r.world.Noticed = func(s sandbox.Sandbox) time.Time { return candidates()[candidateKey(s)].First }
}

// candidateKind is the kind of the sightings of candidates. Two cron lines with different rules have
// candidates of their own: what one does not select is still a candidate of the other.
func (r *cleanupRun) candidateKind() string { return sightCandidate + " " + r.rule.Key() }

// recordCandidates stores what this run saw, for later runs, and notifies people of new
// candidates. Only a run that may act does so.
func (r *cleanupRun) recordCandidates(ctx context.Context) {
	all := slices.Concat(r.survey.Selected, r.survey.Kept)
	var ageless []string
	var candidates []cleanup.Judgement
	for _, j := range all {
		if _, source := j.Sandbox.Age(r.survey.At); source == sandbox.AgeUnknown || source == sandbox.AgeFirstSeen {
			ageless = append(ageless, j.Sandbox.Ref().String())
		}
		if r.rule.NotifyBefore > 0 && (j.Selected() || j.KeepReason == cleanup.KeepNoticed) {
			candidates = append(candidates, j)
		}
	}
	if len(ageless) == 0 && r.rule.NotifyBefore == 0 {
		return
	}
	r.env.writeStore(ctx, r.watch, true, func(ctx context.Context, st store.Store) error {
		for _, ref := range ageless {
			if _, err := st.Sight(ctx, sightFirst, ref, r.env.Now(), time.Second); err != nil {
				return err
			}
		}
		return r.noticeCandidates(ctx, st, candidates)
	})
}

func (r *cleanupRun) noticeCandidates(ctx context.Context, st store.Store, candidates []cleanup.Judgement) error {
	if r.rule.NotifyBefore == 0 {
		return nil
	}
	before, err := st.Sightings(ctx, r.candidateKind())
	if err != nil {
		return err
	}
	var fresh []cleanup.Judgement
	for _, j := range candidates {
		key := candidateKey(j.Sandbox)
		if _, known := before[key]; !known {
			fresh = append(fresh, j) // sighted once people are told of it
			continue
		}
		if _, err := st.Sight(ctx, r.candidateKind(), key, r.env.Now(), time.Second); err != nil {
			return err
		}
		delete(before, key)
	}
	for key := range before { // no candidate any more: its time begins anew
		if r.sawProfileOf(key) {
			if err := st.Forget(ctx, r.candidateKind(), key); err != nil {
				return err
			}
		}
	}
	r.announceCandidates(fresh)
	r.env.followRun(ctx, r.watch, r.noticeMessage(fresh), r.candidatesLeft(candidates))
	return nil
}

// candidatesLeft is the verdict whether there are candidates. A profile that was not seen whole
// keeps none from being known.
func (r *cleanupRun) candidatesLeft(candidates []cleanup.Judgement) sandbox.Verdict {
	switch {
	case len(candidates) > 0:
		return sandbox.True
	case slices.ContainsFunc(r.survey.Shares, func(s cleanup.Share) bool { return s.Err != nil }):
		return sandbox.Unknown
	}
	return sandbox.False
}

// sawProfileOf says that this run saw the whole profile of a candidate.
func (r *cleanupRun) sawProfileOf(key string) bool {
	profile, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(r.survey.Shares, func(s cleanup.Share) bool { return s.Profile == profile && s.Err == nil })
}

// announceCandidates notifies people of what will be ended, while they can still protect it. The
// time until then begins when they are told: what nobody could be told of stays.
func (r *cleanupRun) announceCandidates(fresh []cleanup.Judgement) {
	if len(fresh) == 0 {
		return
	}
	r.watch.Note(fmt.Sprintf("%d new candidates; they are terminated after %s", len(fresh), sandbox.FormatDuration(r.rule.NotifyBefore)))
	r.env.sendLater(r.watch, func(ctx context.Context, n *notify.Notifier) error {
		notice := r.noticeMessage(fresh)
		received, err := n.SendConfirmed(ctx, notice)
		if received {
			r.env.noteSent(notice, n.Receivers(notice), nil, nil)
		}
		if !received {
			return err
		}
		return errors.Join(err, r.env.withStore(func(st store.Store) error {
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), alert.StoreLimit)
			defer stop()
			for _, j := range fresh {
				if _, err := st.Sight(ctx, r.candidateKind(), candidateKey(j.Sandbox), r.env.Now(), time.Second); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

func (r *cleanupRun) noticeMessage(fresh []cleanup.Judgement) notify.Message {
	m := notify.Message{
		Verb: VerbCleanup, RunID: r.id, Host: r.env.Process.Host, Kind: notify.KindFound, Key: episodeKey("cleanup notice "+r.rule.Key(), r.profiles()), At: r.env.Now(),
		Title: fmt.Sprintf("sbx will terminate %d sandboxes after %s", len(fresh), sandbox.FormatDuration(r.rule.NotifyBefore)),
		Text:  "the label " + sandbox.LabelKeep + "=true keeps one", Figures: map[string]float64{"candidates": float64(len(fresh))}, Causes: causesOf(fresh),
	}
	for _, j := range fresh {
		m.Items = append(m.Items, messageItem(j))
	}
	m.Providers, m.Next = r.concernedProviders(m.Items), r.nextCommands(m.Kind, m.Items)
	return m
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
