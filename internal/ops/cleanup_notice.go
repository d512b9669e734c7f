package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/notify"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// shareSightings gives the judgement the sightings of earlier runs.
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
