package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/notify"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// The kinds of sightings that cleanup keeps in the store.
const (
	sightFirst     = "first seen"        // of what tells no age
	sightCandidate = "cleanup candidate" // under --notify-before
)

// seenBefore reads the sightings of a kind when they are first asked for. What cannot
// be read was never seen, which keeps a sandbox.
func (e *Env) seenBefore(ctx context.Context, watch Observer, kind string) func() map[string]store.Sighting {
	return sync.OnceValue(func() (seen map[string]store.Sighting) {
		e.keep(ctx, watch, false, func(ctx context.Context, st store.Store) (err error) {
			seen, err = st.Sightings(ctx, kind)
			return err
		})
		return seen
	})
}

// remembering lets the world know what earlier runs have seen.
func (r *cleanupRun) remembering(ctx context.Context, p *output.Printer) {
	first, candidates := r.d.seenBefore(ctx, p, sightFirst), r.d.seenBefore(ctx, p, sightCandidate)
	r.world.FirstSeen = func(s sandbox.Sandbox) time.Time { return first()[s.Ref().String()].First }
	r.world.Noticed = func(s sandbox.Sandbox) time.Time { return candidates()[candidateKey(s)].First }
}

// candidateKey tells a sandbox from another one that gets its id.
func candidateKey(s sandbox.Sandbox) string {
	return s.Ref().String() + " " + s.CreatedAt.UTC().Format(time.RFC3339Nano)
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
	r.d.keep(ctx, p, true, func(ctx context.Context, st store.Store) error {
		for _, ref := range ageless {
			if _, err := st.Sight(ctx, sightFirst, ref, r.d.now(), time.Second); err != nil {
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
	before, err := st.Sightings(ctx, sightCandidate)
	if err != nil {
		return err
	}
	var fresh []string
	for _, s := range candidates {
		if _, known := before[candidateKey(s)]; !known {
			fresh = append(fresh, s.Ref().String())
		}
		if _, err := st.Sight(ctx, sightCandidate, candidateKey(s), r.d.now(), time.Second); err != nil {
			return err
		}
		delete(before, candidateKey(s))
	}
	for key := range before { // no candidate any more: its time begins anew
		if r.sees(key) {
			if err := st.Forget(ctx, sightCandidate, key); err != nil {
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
		Verb: verbCleanup, RunID: r.id, Host: r.d.Process.Host, Kind: notify.KindFound, Key: "cleanup notice",
		Title: fmt.Sprintf("sbx will end %d sandboxes after %s", len(fresh), after),
		Text:  "the label " + sandbox.LabelKeep + "=true keeps one:\n" + strings.Join(fresh, "\n"), At: r.d.now(),
	})
	if err != nil {
		p.Warn(err.Error())
	}
}
