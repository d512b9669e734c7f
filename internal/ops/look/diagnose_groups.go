package look

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func isStuck(j fleet.Judged) bool { return j.Verdict.Stuck == sandbox.True }

func isSuspected(j fleet.Judged) bool { return !j.Sandbox.State.Ended() && j.Verdict.Suspected() }

// groupByCause groups the chosen sandboxes by cause and provider: the most frequent cause first.
func groupByCause(judged []fleet.Judged, chosen func(fleet.Judged) bool) []ops.CauseGroup {
	var groups []ops.CauseGroup
	ids := make([]string, 0, len(judged))
	for _, j := range judged {
		ids = append(ids, j.Sandbox.ID)
	}
	short := sandbox.ShortIDs(ids)
	totals := make(map[sandbox.Cause]int)
	for _, j := range judged {
		if !chosen(j) {
			continue
		}
		cause, s := j.Verdict.Cause, j.Sandbox
		totals[cause]++
		i := slices.IndexFunc(groups, func(g ops.CauseGroup) bool { return g.Provider == s.Provider && g.Cause == cause })
		if i < 0 {
			i, groups = len(groups), append(groups, ops.CauseGroup{Provider: s.Provider, Cause: cause})
		}
		groups[i].Refs, groups[i].Short = append(groups[i].Refs, s.Ref()), append(groups[i].Short, short[s.ID])
		groups[i].Reasons = append(groups[i].Reasons, j.Verdict.Reason)
	}
	slices.SortStableFunc(groups, func(a, b ops.CauseGroup) int {
		return cmp.Or(
			cmp.Compare(totals[b.Cause], totals[a.Cause]), cmp.Compare(a.Cause, b.Cause), cmp.Compare(len(b.Refs), len(a.Refs)),
			cmp.Compare(a.Provider, b.Provider),
		)
	})
	return groups
}

// The evidence of how many are stuck, or suspected, at a provider begins so.
const (
	stuckAt     = "stuck at "
	suspectedAt = "suspected at "
)

// IsCountEvidence says that evidence is how many there are at a provider.
func IsCountEvidence(e sandbox.Evidence) bool {
	return strings.HasPrefix(e.What, stuckAt) || strings.HasPrefix(e.What, suspectedAt)
}

// OfGroup says that a cause is that of a group of sandboxes, and not of a profile.
func OfGroup(c triage.Finding) bool { return len(c.Evidence) > 0 && IsCountEvidence(c.Evidence[0]) }

// ExampleEvidence names the sandbox that the evidence after it is of.
const ExampleEvidence = "for example"

// groupCauses makes one finding for each cause of the chosen ones, the most frequent first. Its
// figures and evidence are those of the sandbox of which most is known; the evidence begins with
// how many there are.
func (d *diagnosis) groupCauses(judged []fleet.Judged, chosen func(fleet.Judged) bool, groups []ops.CauseGroup, at string) []triage.Finding {
	best := make(map[sandbox.Cause][]triage.Finding)
	for _, j := range judged {
		if !chosen(j) {
			continue
		}
		causes := triage.Causes(j.Verdict, j.Sandbox, j.Signals, d.env.Thresholds(j.Sandbox), d.env.Now())
		if have := best[j.Verdict.Cause]; len(causes) > 0 && (len(have) == 0 || causes[0].Coverage > have[0].Coverage) {
			example := sandbox.Evidence{What: ExampleEvidence, Value: j.Sandbox.Ref().String(), Source: "look", At: d.env.Now()}
			causes[0].Evidence = slices.Concat([]sandbox.Evidence{example}, causes[0].Evidence)
			best[j.Verdict.Cause] = causes
		}
	}
	var all []triage.Finding
	for i, g := range groups {
		count := sandbox.Evidence{What: at + g.Provider, Value: strconv.Itoa(len(g.Refs)), Source: "look", At: d.env.Now()}
		if i > 0 && groups[i-1].Cause == g.Cause {
			last := &all[len(all)-1]
			last.Evidence = slices.Insert(last.Evidence, countsIn(groups[:i], g.Cause), count)
			continue
		}
		f := triage.Finding{ID: string(sandbox.CauseUnknown), Cause: g.Cause, Title: sandbox.CauseUnknown.Label(), Confidence: sandbox.ConfidenceUnknown}
		if found := best[g.Cause]; len(found) > 0 && g.Cause != sandbox.CauseUnknown {
			if f = found[0]; len(found) > 1 {
				f.WhyNot = "rather than " + found[1].Title + ": " + found[1].WhyNot
			}
		}
		f.Evidence = append([]sandbox.Evidence{count}, f.Evidence...)
		all = append(all, f)
	}
	return all
}

func countsIn(groups []ops.CauseGroup, cause sandbox.Cause) int {
	n := 0
	for _, g := range groups {
		if g.Cause == cause {
			n++
		}
	}
	return n
}

// rankAll joins the causes of groups and those of profiles, the likeliest first. That sandboxes do
// not start, or are stuck for an unknown cause, may be an effect of what ails their profile.
func rankAll(ofGroups, ofProfiles []triage.Finding) []triage.Finding {
	all := slices.Clone(ofGroups)
	for _, c := range ofProfiles {
		if i := slices.IndexFunc(all, func(g triage.Finding) bool { return g.ID == c.ID }); i >= 0 {
			all[i].Evidence = slices.Concat(all[i].Evidence, c.Evidence)
			continue
		}
		all = append(all, c)
	}
	rank := func(c triage.Finding) int {
		effect := c.Cause == sandbox.CauseProvisioning || c.Confidence == sandbox.ConfidenceUnknown
		switch ofGroup := OfGroup(c); {
		case ofGroup && isLikely(c) && !effect:
			return 0
		case !ofGroup && isLikely(c):
			return 1
		case ofGroup:
			return 2
		case !effect:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(all, func(a, b triage.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func countWhere(judged []fleet.Judged, holds func(fleet.Judged) bool) int64 {
	n := int64(0)
	for _, j := range judged {
		if holds(j) {
			n++
		}
	}
	return n
}

// chooseWhere are those for which holds; mostly few of many, so they alone are copied.
func chooseWhere(judged []fleet.Judged, holds func(fleet.Judged) bool) (chosen []fleet.Judged) {
	for _, j := range judged {
		if holds(j) {
			chosen = append(chosen, j)
		}
	}
	return chosen
}
