package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// remembering lets the world know what earlier runs have seen.
func (r *cleanupRun) remembering(ctx context.Context, p *output.Printer) {
	first, candidates := r.d.Sightings(ctx, p, ops.SightFirst), r.d.Sightings(ctx, p, ops.SightCandidate)
	r.world.FirstSeen = func(s sandbox.Sandbox) time.Time { return first()[s.Ref().String()].First }
	r.world.Noticed = func(s sandbox.Sandbox) time.Time { return candidates()[ops.CandidateKey(s)].First }
}

// notice writes down what this run saw, for those to come, and tells people of new
// candidates. Only a run that may act does so.
func (r *cleanupRun) notice(ctx context.Context, p *output.Printer) {
	all := slices.Concat(r.survey.Selected, r.survey.Kept)
	var ageless []string
	var candidates []sandbox.Sandbox
	for _, j := range all {
		if _, source := j.Sandbox.Age(r.survey.At); source == sandbox.AgeUnknown || source == sandbox.AgeFirstSeen {
			ageless = append(ageless, j.Sandbox.Ref().String())
		}
		if r.rule.NotifyBefore > 0 && (j.Selected() || j.Ground == cleanup.GroundNoticed) {
			candidates = append(candidates, j.Sandbox)
		}
	}
	if len(ageless) == 0 && r.rule.NotifyBefore == 0 {
		return
	}
	r.d.WriteStore(ctx, p, true, func(ctx context.Context, st store.Store) error {
		for _, ref := range ageless {
			if _, err := st.Sight(ctx, ops.SightFirst, ref, r.d.Now(), time.Second); err != nil {
				return err
			}
		}
		return r.noticeCandidates(ctx, p, st, candidates)
	})
}

func (r *cleanupRun) noticeCandidates(ctx context.Context, p *output.Printer, st store.Store, candidates []sandbox.Sandbox) error {
	if r.rule.NotifyBefore == 0 {
		return nil
	}
	before, err := st.Sightings(ctx, ops.SightCandidate)
	if err != nil {
		return err
	}
	var fresh []string
	for _, s := range candidates {
		if _, known := before[ops.CandidateKey(s)]; !known {
			fresh = append(fresh, s.Ref().String())
		}
		if _, err := st.Sight(ctx, ops.SightCandidate, ops.CandidateKey(s), r.d.Now(), time.Second); err != nil {
			return err
		}
		delete(before, ops.CandidateKey(s))
	}
	for key := range before { // no candidate any more: its time begins anew
		if r.sees(key) {
			if err := st.Forget(ctx, ops.SightCandidate, key); err != nil {
				return err
			}
		}
	}
	r.announce(ctx, p, fresh)
	return nil
}

// sees says that this run saw the whole profile of a candidate.
func (r *cleanupRun) sees(key string) bool {
	profile, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(r.survey.Shares, func(s cleanup.Share) bool { return s.Profile == profile && s.Err == nil })
}

// announce tells people what will go, while they can still protect it.
func (r *cleanupRun) announce(ctx context.Context, p *output.Printer, fresh []string) {
	if len(fresh) == 0 {
		return
	}
	after := sandbox.FormatDuration(r.rule.NotifyBefore)
	p.Note(fmt.Sprintf("%d new candidates; they go after %s", len(fresh), after))
	n, err := r.d.Notifier("")
	if err != nil {
		p.Warn(err.Error())
	}
	defer n.Close()
	err = n.Send(ctx, notify.Message{
		Verb: ops.VerbCleanup, RunID: r.id, Host: r.d.Process.Host, Kind: notify.KindFound, Key: "cleanup notice",
		Title: fmt.Sprintf("sbx will end %d sandboxes after %s", len(fresh), after),
		Text:  "the label " + sandbox.LabelKeep + "=true keeps one:\n" + strings.Join(fresh, "\n"), At: r.d.Now(),
	})
	if err != nil {
		p.Warn(err.Error())
	}
}
