package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/runs"
	"sbx/internal/safety"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Share is what was seen of one profile.
type Share struct {
	Profile    string
	Err        error         // why its listing cannot be used; nil = it is complete
	Fleet      int           // how many the rule could end at most, of which the share is computed
	Active     int           // running
	Selected   int           // selected by the rule
	BelowQuota bool          // too little of its quota is used: it was not surveyed, and nothing of it ends
	Skew       time.Duration // how far its clock is ahead; 0 = not known
	Unowned    int           // how many it would select if they had an owner, where ownership is not configured
}

// Survey is the judgement of the whole fleet.
type Survey struct {
	At       time.Time
	Rule     Rule
	Selected []Judgement // the oldest first, so that a budget drops the youngest
	Kept     []Judgement // in order of arrival
	Shares   []Share     // of every profile that was asked, in their order
	// Sources are the failures of sources of activity, one error per profile and kind. The
	// sandboxes they may have shown to be active stay.
	Sources []error
}

// Unjudged counts the sandboxes that stay because their activity is unknown.
func (s Survey) Unjudged() int { return s.KeepReasons()[KeepActivityUnknown] }

// FailedKept counts the failed sandboxes that stay although the rule asks for failed ones, where it selects nothing: the
// words that choose them by age or state include none.
func (s Survey) FailedKept() int {
	asks := s.Rule.FailedOlderThan > 0 || slices.Contains(s.Rule.Selector.States, sandbox.StateFailed)
	if !asks || s.Rule.IncludeFailed || s.Rule.Delete || len(s.Selected) > 0 {
		return 0
	}
	n := 0
	for _, j := range s.Kept {
		if j.KeepReason == KeepEnded && j.Sandbox.State == sandbox.StateFailed {
			n++
		}
	}
	return n
}

// UnknownMatches counts by reason the sandboxes that stay because a selector is unknown for them.
func (s Survey) UnknownMatches() map[string]int {
	n := map[string]int{}
	for _, j := range s.Kept {
		if j.KeepReason == KeepUnknown {
			n[j.Reason]++
		}
	}
	return n
}

// Unowned counts by profile what the rule would end if it had an owner; profiles without
// any are left out.
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
func (s Survey) Errs() []error { return append(s.listingErrors(), s.Sources...) }

// listingErrors are the errors of profiles that are left out.
func (s Survey) listingErrors() []error {
	var errs []error
	for _, share := range s.Shares {
		if share.Err != nil {
			errs = append(errs, share.Err)
		}
	}
	return errs
}

// KeepReasons counts the kept sandboxes by reason.
func (s Survey) KeepReasons() map[KeepReason]int {
	n := make(map[KeepReason]int)
	for _, j := range s.Kept {
		n[j.KeepReason]++
	}
	return n
}

// TakeSurvey lists and judges everything, and changes nothing. A profile whose listing
// failed, even in part, is left out as a whole: the missing part might be what protects the
// rest.
func TakeSurvey(ctx context.Context, f *fleet.Fleet, w Environment, r Rule) (Survey, error) {
	w.endsFailed = f.EndsFailed
	listed := f.CollectWith(ctx, providers.Query{All: true}, w.Listed)
	s := Survey{At: w.Now(), Rule: r}
	failed := failuresByProfile(f, listed.Errors)
	for _, name := range f.Names() {
		skew, _ := f.Skew(name)
		s.Shares = append(s.Shares, Share{Profile: name, Err: failed[name], Skew: skew})
	}
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	judged := make([]Judgement, 0, len(listed.Items))
	seen := make(map[sandbox.Ref]bool, len(listed.Items))
	for _, sb := range listed.Items {
		if failed[sb.Provider] != nil || seen[sb.Ref()] { // a listing that changes meanwhile may contain one twice
			continue
		}
		seen[sb.Ref()] = true
		judged = append(judged, r.judgeSandbox(w, sb, s.At, nil))
	}
	listed.Items = nil // the judgements have them
	r.observeUndecided(ctx, f, w, judged, s.At)
	r.readEnds(ctx, f, w, judged, s.At)
	r.keepBehindSuspectedEdges(ctx, f, w, judged)
	s.sortSelected(w, judged)
	s.Sources = append(s.clockErrors(judged), sourceErrors(s.Kept)...)
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	return s, nil
}

// failuresByProfile sorts errors of a listing by profile. An error without a profile
// applies to all.
func failuresByProfile(f *fleet.Fleet, errs []error) map[string]error {
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

// observeUndecided observes the sandboxes themselves where the record does not decide. What
// is unknown after that stays.
func (r Rule) observeUndecided(ctx context.Context, f *fleet.Fleet, w Environment, judged []Judgement, now time.Time) {
	var open []sandbox.Sandbox
	var at []int
	for i, j := range judged {
		if j.needsLook {
			open, at = append(open, j.Sandbox), append(at, i)
		}
	}
	f.Look(ctx, open, fleet.Looking{Thresholds: w.Thresholds, Full: r.Unhealthy, Seen: w.Looked}, func(i int, o fleet.Observation) {
		j := r.judgeSandbox(w, open[i], now, &o)
		if !j.Selected() { // those of ten thousand would fill the memory
			j.observation = nil
			if w.Brief && j.Verdict.Stuck != sandbox.True {
				j.Steps, j.Evidence, j.Verdict.Evidence, j.Verdict.Findings = nil, nil, nil, nil
			}
		}
		judged[at[i]] = j
	})
}

// readEnds reads when those that the rule selects have ended, where the listing does not say it and the record may. One
// that cannot be read stays selected: each is read again before its request.
func (r Rule) readEnds(ctx context.Context, f *fleet.Fleet, w Environment, judged []Judgement, now time.Time) {
	var open []sandbox.Sandbox
	var at []int
	for i, j := range judged {
		s := j.Sandbox
		chosen := j.Selected() || j.KeepReason == KeepNotOwned && w.profileNamed(s.Provider).OwnerUnset
		if chosen && atRest(s) && s.EndedAt.IsZero() && !r.IgnoreActivity {
			open, at = append(open, s), append(at, i)
		}
	}
	f.ForEach(open, func(i int) {
		if whole, err := f.Get(ctx, open[i].Ref()); err == nil && whole.CreatedAt.Equal(open[i].CreatedAt) {
			open[i].EndedAt = whole.EndedAt
			judged[at[i]] = r.judgeSandbox(w, open[i], now, judged[at[i]].observation)
		}
	})
}

// clockErrors are the profiles in which the rule selects nothing while the clock is wrong: it could not see what is old.
// Where it selects something, the guard of the clock refuses it.
func (s *Survey) clockErrors(judged []Judgement) []error {
	var errs []error
	for _, share := range s.Shares {
		lives := func(j Judgement) bool { return j.Sandbox.Provider == share.Profile && !j.Sandbox.State.Ended() }
		if share.Err == nil && share.Selected == 0 && !safety.Trusted(share.Skew) && slices.ContainsFunc(judged, lives) {
			errs = append(errs, safety.ClockError(share.Profile, share.Skew))
		}
	}
	return errs
}

// sourceErrors sums the sources that failed for sandboxes that stay because of that.
func sourceErrors(kept []Judgement) []error {
	var unjudged []fleet.FailedLook
	for _, j := range kept {
		if j.KeepReason == KeepActivityUnknown {
			unjudged = append(unjudged, fleet.FailedLook{Profile: j.Sandbox.Provider, Err: j.failed})
		}
	}
	return fleet.FailedLooks(unjudged)
}

// sortSelected takes the judgements apart, and keeps the kept ones in their place.
func (s *Survey) sortSelected(w Environment, judged []Judgement) {
	s.Kept = judged[:0]
	for _, j := range judged {
		i := slices.IndexFunc(s.Shares, func(p Share) bool { return p.Profile == j.Sandbox.Provider })
		if i < 0 {
			continue // no member of the fleet listed it
		}
		if j.Sandbox.State == sandbox.StateRunning {
			s.Shares[i].Active++
		}
		if s.Rule.countsToFleet(w, j) {
			s.Shares[i].Fleet++
		}
		if j.Selected() {
			s.Shares[i].Selected++
			s.Selected = append(s.Selected, j)
			continue
		}
		if j.KeepReason == KeepNotOwned && w.profileNamed(j.Sandbox.Provider).OwnerUnset {
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

// countsToFleet reports whether a sandbox belongs to the total of which a share may end: an
// ended one only where its remains may be deleted.
func (r Rule) countsToFleet(w Environment, j Judgement) bool {
	s := j.Sandbox
	return r.Delete || !s.State.Ended() || s.State == sandbox.StateFailed && r.IncludeFailed && w.canEndFailed(s.Provider)
}

// Verdict is the error for the exit code of a run: nil when every profile was listed
// completely and everything selected has ended. Changed and skipped sandboxes are no error, unless all have changed.
func (s Survey) Verdict(endings []sandbox.Ending) error {
	left, ending := s.listingErrors(), fleet.Verdict(endings, false)
	if ending == nil && !slices.ContainsFunc(s.Shares, func(share Share) bool { return share.BelowQuota }) { // there, nothing was to be done
		ending = fleet.AllChanged(endings)
	}
	if len(left) == 0 && len(s.Sources) > 0 && !fault.Interrupted(ending) {
		return s.sourcesVerdict(ending)
	}
	switch {
	case len(left) == 0:
		return ending
	case len(left) == len(s.Shares) && len(endings) == 0:
		return errors.Join(left...)
	case fault.Interrupted(ending):
		return ending
	case ending != nil:
		return fault.New(fault.KindPartial, "%w; and %s", ending, s.skippedText(left))
	}
	return fault.New(fault.KindPartial, "%s", s.skippedText(left)).
		WithHint("the others are done; nothing was terminated in profiles that could not be listed")
}

// skippedText says which profiles could not be listed, and why: a missing credential is repaired
// otherwise than a provider that does not answer.
func (s Survey) skippedText(left []error) string {
	const most = 3
	reasons := make([]string, len(left))
	for i, err := range left {
		reasons[i] = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return fmt.Sprintf("%d of %d profiles could not be listed and were skipped (%s)", len(left), len(s.Shares), sandbox.FormatFirst(reasons, most))
}

// sourcesVerdict is partial: everything else is done, and some sandboxes could not be
// judged.
func (s Survey) sourcesVerdict(ending error) error {
	if ending != nil {
		return fault.New(fault.KindPartial, "%w; and not everything could be judged: %s", ending, s.Sources[0])
	}
	if refused := slices.DeleteFunc(slices.Clone(s.Sources), func(err error) bool { return fault.KindOf(err) != fault.KindRefused }); len(refused) == len(s.Shares) {
		return errors.Join(refused...) // no clock can be trusted
	}
	return fault.New(fault.KindPartial, "%w", s.Sources[0]).WithHint("%s", fault.HintOf(s.Sources[0]))
}

// Succeeded names the profiles in which everything was done: each was listed completely,
// every source of activity answered, every ending succeeded, and nothing stayed for want of
// a configured owner.
func (s Survey) Succeeded(endings []sandbox.Ending) []string {
	trouble := map[string]bool{}
	for _, err := range s.Sources {
		known, ok := errors.AsType[*fault.Error](err)
		if !ok || known.Provider == "" {
			return []string{} // the error is about all profiles
		}
		trouble[known.Provider] = true
	}
	for _, e := range endings {
		if fleet.Verdict([]sandbox.Ending{e}, false) != nil {
			trouble[e.Ref.Provider] = true
		}
	}
	names := []string{}
	for _, share := range s.Shares {
		if share.Err == nil && share.Unowned == 0 && !trouble[share.Profile] {
			names = append(names, share.Profile)
		}
	}
	return names
}

// Records are the shares as the journal keeps them, redacted.
func (s Survey) Records(redact func(string) string) []runs.Profile {
	records := make([]runs.Profile, 0, len(s.Shares))
	for _, share := range s.Shares {
		r := runs.Profile{Profile: share.Profile, Complete: share.Err == nil, Fleet: share.Fleet, Selected: share.Selected, Unowned: share.Unowned}
		if share.Err == nil {
			r.Active = new(share.Active)
		}
		if share.Err != nil {
			r.Error = redact(share.Err.Error())
		}
		records = append(records, r)
	}
	return records
}

// Guards are the limits of a run over this survey.
func (s Survey) Guards(w Environment) []safety.Guard {
	guards := []safety.Guard{w.Limits.MaxDeleteGuard(len(s.Selected), safety.Ending())}
	for _, share := range s.Shares {
		if share.Err != nil || share.Selected == 0 {
			continue
		}
		guards = append(guards, w.Limits.FractionGuard(share.Profile, share.Selected, share.Fleet, safety.Ending()))
		if share.Skew != 0 {
			guards = append(guards, safety.ClockGuard(share.Profile, share.Skew))
		}
		if w.Limits.IsProduction(share.Profile) {
			guards = append(guards, w.Limits.ProductionGuard(share.Profile, share.Selected, safety.Ending()))
		}
	}
	return guards
}

// Refusal is fault.KindRefused where a guard refuses, else nil.
// Line is the command line that was typed, if it is known.
func Refusal(guards []safety.Guard, line ...string) error {
	return safety.Refusal(guards, "see the plan first (without --yes)", line...)
}
