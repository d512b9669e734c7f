package cleanup

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Share is what was seen of one profile.
type Share struct {
	Profile  string
	Err      error         // why its listing cannot be acted on; nil = it is complete
	Fleet    int           // how many the rule could end at most: what the share of the fleet is taken of
	Active   int           // how many run
	Selected int           // how many it would end
	Calm     bool          // too little of its quota is used: it was not looked at, and nothing of it ends
	Skew     time.Duration // how far its clock is ahead; 0 where that is not known
	Unowned  int           // how many it would end if somebody owned them, where nobody has decided
}

// Survey is a look at the whole fleet.
type Survey struct {
	At       time.Time
	Rule     Rule
	Selected []Judgement // the oldest first, so that a budget cuts the youngest
	Kept     []Judgement // in order of arrival
	Shares   []Share     // of every profile that was asked, in their order
	// Sources are the failures of sources of activity: what they may have seen at work
	// stays. One error a profile and kind.
	Sources []error
}

// Unjudged counts the sandboxes that stay because nothing tells whether they work.
func (s Survey) Unjudged() int { return s.Grounds()[GroundActivityUnknown] }

// Unowned counts what the rule would end if somebody owned it, by profile; profiles
// without any are left out.
func (s Survey) Unowned() map[string]int {
	n := map[string]int{}
	for _, share := range s.Shares {
		if share.Unowned > 0 {
			n[share.Profile] = share.Unowned
		}
	}
	return n
}

// Errs are the errors of profiles that are left out, and of sources that failed.
func (s Survey) Errs() []error { return append(s.unlisted(), s.Sources...) }

// unlisted are the errors of profiles that are left out.
func (s Survey) unlisted() []error {
	var errs []error
	for _, share := range s.Shares {
		if share.Err != nil {
			errs = append(errs, share.Err)
		}
	}
	return errs
}

// Grounds counts what stays, by ground.
func (s Survey) Grounds() map[Ground]int {
	n := make(map[Ground]int)
	for _, j := range s.Kept {
		n[j.Ground]++
	}
	return n
}

// Look lists everything and judges it. A profile whose listing failed, in whole or
// in part, is left out as a whole: what is missing from it might be what protects
// the rest. Nothing is changed.
func Look(ctx context.Context, f *fleet.Fleet, w World, r Rule) (Survey, error) {
	w.endsFailed = f.EndsFailed
	listed := f.Collect(ctx, providers.Query{All: true})
	s := Survey{At: w.Now(), Rule: r}
	failed := failures(f, listed.Errors)
	for _, name := range f.Names() {
		skew, _ := f.Skew(name)
		s.Shares = append(s.Shares, Share{Profile: name, Err: failed[name], Skew: skew})
	}
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	var judged []Judgement
	seen := map[sandbox.Ref]bool{}
	for _, sb := range listed.Items {
		if failed[sb.Provider] != nil || seen[sb.Ref()] { // a list that moves may show one twice
			continue
		}
		seen[sb.Ref()] = true
		judged = append(judged, r.judge(w, sb, s.At, nil))
	}
	r.lookCloser(ctx, f, w, judged, s.At)
	s.sort(w, judged)
	s.Sources = failedSources(s.Kept)
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	return s, nil
}

// failures sorts errors of a listing by profile. One that names no profile speaks of
// all.
func failures(f *fleet.Fleet, errs []error) map[string]error {
	failed := map[string]error{}
	for _, err := range errs {
		names := f.Names()
		if known, ok := errors.AsType[*fault.Error](err); ok && known.Provider != "" {
			names = []string{known.Provider}
		}
		for _, name := range names {
			if failed[name] == nil {
				failed[name] = err
			}
		}
	}
	return failed
}

// lookCloser asks the sandboxes themselves where the record does not decide. What is
// not known after it stays.
func (r Rule) lookCloser(ctx context.Context, f *fleet.Fleet, w World, judged []Judgement, now time.Time) {
	var all sync.WaitGroup
	for i, j := range judged {
		if j.needsLook {
			all.Go(func() {
				var o fleet.Observation
				if r.Unhealthy {
					o = f.Observe(ctx, j.Sandbox)
				} else {
					o = f.ObserveLife(ctx, j.Sandbox)
				}
				judged[i] = r.judge(w, j.Sandbox, now, &o)
			})
		}
	}
	all.Wait()
}

// failedSources sums what could not be asked about the sandboxes that stay for it.
func failedSources(kept []Judgement) []error {
	var unjudged []fleet.Observation
	for _, j := range kept {
		if j.Ground == GroundActivityUnknown && j.seen != nil {
			unjudged = append(unjudged, *j.seen)
		}
	}
	return fleet.FailedLooks(unjudged)
}

func (s *Survey) sort(w World, judged []Judgement) {
	for _, j := range judged {
		i := slices.IndexFunc(s.Shares, func(p Share) bool { return p.Profile == j.Sandbox.Provider })
		if i < 0 {
			continue // no member of the fleet listed it
		}
		if j.Sandbox.State == sandbox.StateRunning {
			s.Shares[i].Active++
		}
		if s.Rule.endable(w, j) {
			s.Shares[i].Fleet++
		}
		if j.Selected() {
			s.Shares[i].Selected++
			s.Selected = append(s.Selected, j)
			continue
		}
		if j.Ground == GroundNotOwned && w.profile(j.Sandbox.Provider).Undecided {
			s.Shares[i].Unowned++
		}
		s.Kept = append(s.Kept, j)
	}
	slices.SortStableFunc(s.Selected, func(a, b Judgement) int {
		x, _ := a.Sandbox.Age(s.At)
		y, _ := b.Sandbox.Age(s.At)
		return cmp.Compare(y, x)
	})
}

// endable says that a sandbox counts to the fleet of which a share may end: those
// that are over count only where what they left may be deleted.
func (r Rule) endable(w World, j Judgement) bool {
	s := j.Sandbox
	return r.Delete || !s.State.Ended() || s.State == sandbox.StateFailed && r.IncludeFailed && w.ends(s.Provider)
}
