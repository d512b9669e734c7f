package ops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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

// withNotifications runs do, which acts, and reports the result to pings, people and the
// textfile. A report that cannot be delivered is a warning.
func (r *cleanupRun) withNotifications(ctx context.Context, do func() error) error {
	n, err := r.env.Notifier(r.req.Ping)
	if err != nil {
		r.watch.Warn(err.Error())
	}
	defer n.Close()
	warn := func(err error) {
		if err != nil {
			r.watch.Warn(err.Error())
		}
	}
	warn(n.PingStart(ctx, r.id))
	began := time.Now()
	err = do()
	kind := fault.KindOf(err)
	if kind != fault.KindLocked { // the run that holds the lock speaks for itself
		warn(n.PingEnd(ctx, r.id, fault.ExitCode(err), r.runSummary(err)))
		warn(r.writeTextfile(ctx, fault.ExitCode(err), time.Since(began), false))
	}
	if what, tell := notify.KindFor(kind); tell {
		warn(n.Send(ctx, r.runMessage(what, err)))
	}
	return err
}

// runMessage is the message to people about a run that did not go well.
func (r *cleanupRun) runMessage(what notify.Kind, err error) notify.Message {
	counts := fleet.Count(r.endings)
	figures := map[string]string{"selected": strconv.Itoa(len(r.survey.Selected)), "exit code": strconv.Itoa(fault.ExitCode(err))}
	for _, o := range sandbox.Outcomes() {
		if n := counts.Of(o); n > 0 {
			figures[string(o)] = strconv.Itoa(n)
		}
	}
	return notify.Message{
		Verb: "cleanup", RunID: r.id, Host: r.env.Process.Host, Kind: what, Key: strings.TrimSpace("cleanup " + r.provenLayer()), Text: r.runSummary(err), Figures: figures, At: r.env.Now(),
	}
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

// writeTextfile writes the figures of this run, if a file was named.
func (r *cleanupRun) writeTextfile(ctx context.Context, code int, took time.Duration, dry bool) error {
	if r.req.Textfile == "" {
		return nil
	}
	figures := r.runFigures(ctx, code, took, dry)
	if err := metrics.WriteTextfile(r.env.Path(r.req.Textfile), figures.Set()); err != nil {
		return fmt.Errorf("--textfile: %w", err)
	}
	return nil
}

// runFigures are those of this run. When a profile was last in order comes from the
// journals, which a dry or refused run cannot move.
func (r *cleanupRun) runFigures(ctx context.Context, code int, took time.Duration, dry bool) metrics.Cleanup {
	runs, _ := r.env.Histories(ctx, VerbCleanup, statusRuns) // what cannot be read counts as never: the alert fires
	m := metrics.Cleanup{
		Build: metrics.Build{Version: r.env.Version.Version, Commit: r.env.Version.Commit, Go: r.env.Version.Go},
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
	return r.run.writeTextfile(ctx, code, 0, true)
}

func (r *cleanupRun) shareSightings(ctx context.Context) {
	first, candidates := r.env.Sightings(ctx, r.watch, sightFirst), r.env.Sightings(ctx, r.watch, sightCandidate)
	r.world.FirstSeen = func(s sandbox.Sandbox) time.Time { return first()[s.Ref().String()].First }
	r.world.Noticed = func(s sandbox.Sandbox) time.Time { return candidates()[candidateKey(s)].First }
}

// recordCandidates stores what this run saw, for later runs, and notifies people of new
// candidates. Only a run that may act does so.
func (r *cleanupRun) recordCandidates(ctx context.Context) {
	all := slices.Concat(r.survey.Selected, r.survey.Kept)
	var ageless []string
	var candidates []sandbox.Sandbox
	for _, j := range all {
		if _, source := j.Sandbox.Age(r.survey.At); source == sandbox.AgeUnknown || source == sandbox.AgeFirstSeen {
			ageless = append(ageless, j.Sandbox.Ref().String())
		}
		if r.rule.NotifyBefore > 0 && (j.Selected() || j.KeepReason == cleanup.KeepNoticed) {
			candidates = append(candidates, j.Sandbox)
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

func (r *cleanupRun) noticeCandidates(ctx context.Context, st store.Store, candidates []sandbox.Sandbox) error {
	if r.rule.NotifyBefore == 0 {
		return nil
	}
	before, err := st.Sightings(ctx, sightCandidate)
	if err != nil {
		return err
	}
	var fresh []string
	for _, s := range candidates {
		if _, known := before[candidateKey(s)]; !known {
			fresh = append(fresh, s.Ref().String())
		}
		if _, err := st.Sight(ctx, sightCandidate, candidateKey(s), r.env.Now(), time.Second); err != nil {
			return err
		}
		delete(before, candidateKey(s))
	}
	for key := range before { // no candidate any more: its time begins anew
		if r.sawProfileOf(key) {
			if err := st.Forget(ctx, sightCandidate, key); err != nil {
				return err
			}
		}
	}
	r.announceCandidates(ctx, fresh)
	return nil
}

// sawProfileOf says that this run saw the whole profile of a candidate.
func (r *cleanupRun) sawProfileOf(key string) bool {
	profile, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(r.survey.Shares, func(s cleanup.Share) bool { return s.Profile == profile && s.Err == nil })
}

// announceCandidates notifies people of what will be ended, while they can still protect it.
func (r *cleanupRun) announceCandidates(ctx context.Context, fresh []string) {
	if len(fresh) == 0 {
		return
	}
	after := sandbox.FormatDuration(r.rule.NotifyBefore)
	r.watch.Note(fmt.Sprintf("%d new candidates; they go after %s", len(fresh), after))
	n, err := r.env.Notifier("")
	if err != nil {
		r.watch.Warn(err.Error())
	}
	defer n.Close()
	err = n.Send(ctx, notify.Message{
		Verb: VerbCleanup, RunID: r.id, Host: r.env.Process.Host, Kind: notify.KindFound, Key: "cleanup notice",
		Title: fmt.Sprintf("sbx will end %d sandboxes after %s", len(fresh), after),
		Text:  "the label " + sandbox.LabelKeep + "=true keeps one:\n" + strings.Join(fresh, "\n"), At: r.env.Now(),
	})
	if err != nil {
		r.watch.Warn(err.Error())
	}
}

// notifyOverdue notifies people of each layer that should have run and did not. A failed
// notification is a warning.
func (e *Env) notifyOverdue(ctx context.Context, watch Reporter, statuses []cron.Status) {
	n, err := e.Notifier("")
	if err != nil {
		watch.Warn(err.Error())
	}
	defer n.Close()
	for _, s := range statuses {
		if s.Verdict != sandbox.False {
			continue
		}
		what := " leaves stuck sandboxes on "
		if s.Overdue {
			what = " is overdue on "
		}
		err := n.Send(ctx, notify.Message{
			Verb: "cron", Host: e.Process.Host, Kind: notify.KindOverdue, Key: "cron " + string(s.Layer),
			Title: "sbx layer " + string(s.Layer) + what + e.Process.Host, Text: s.Message,
			Figures: map[string]string{"expected every": sandbox.FormatDuration(s.Every)}, At: e.Now(),
		})
		if err != nil {
			watch.Warn(err.Error())
		}
	}
}
