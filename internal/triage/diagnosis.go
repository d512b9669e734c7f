package triage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Causes are the possible causes of what a verdict says is wrong, for people to weigh: the cause
// of the verdict first, then the others that are a hint at least, those of the whole profile behind
// them, then the best one of those that the symptoms exclude. Each after the first has WhyNot. Empty
// where nothing is wrong: what ails the profile is no cause of a sandbox that is at work.
func Causes(v Verdict, s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) []Finding {
	now, s.ClockSkew = s.Clock(now), 0
	causes := slices.DeleteFunc(slices.Clone(v.Findings), func(f Finding) bool {
		return f.Wide && v.Stuck == sandbox.False
	})
	if v.Cause != sandbox.CauseNone && v.Cause != sandbox.CauseUnknown {
		i := slices.IndexFunc(causes, func(f Finding) bool { return f.Cause == v.Cause && !f.Wide })
		first := v.ownFinding(observation{s: s, sig: sig, t: t, now: now})
		if i >= 0 {
			first = causes[i]
			causes = slices.Delete(causes, i, i+1)
		}
		causes = slices.Insert(causes, 0, first)
	}
	if len(causes) == 0 {
		return nil
	}
	if v.Cause != sandbox.CauseNone && v.Cause != sandbox.CauseStopped { // beside a hint of something that nothing suffers from there is nothing to exclude
		causes = append(causes, excludedCause(observation{s: s, sig: sig, t: t, now: now}, causeRules(), causes)...)
		slices.SortStableFunc(causes[1:], func(a, b Finding) int { return cmp.Compare(a.remoteness(), b.remoteness()) })
	}
	explainRanking(putExhaustionFirst(causes))
	return causes
}

// exhaustion is the ID of the finding that the resources of the provider are exhausted.
const exhaustion = "resource_exhaustion"

// putExhaustionFirst puts resources that are probably exhausted before "it does not start", which
// is what happens and not why.
func putExhaustionFirst(causes []Finding) []Finding {
	i := slices.IndexFunc(causes, func(f Finding) bool { return f.ID == exhaustion && f.Confidence == sandbox.Probable })
	if i > 0 && causes[0].Cause == sandbox.CauseProvisioning {
		why := causes[i]
		copy(causes[1:i+1], causes[:i])
		causes[0] = why
	}
	return causes
}

// remoteness orders findings by how near they are to what the sandbox does: its behaviour, the state
// of its profile, what the symptoms exclude, and that it has no owner, which makes nothing stuck.
func (f Finding) remoteness() int {
	switch {
	case f.ID == noOwner:
		return 3
	case f.Confidence == sandbox.ConfidenceUnknown:
		return 2
	case f.Wide:
		return 1
	}
	return 0
}

// ownFinding is the finding of a verdict whose cause no rule of symptoms proves: the reason for
// being stuck does. Where a rule knows the cause, its symptoms are counted.
func (v Verdict) ownFinding(m observation) Finding {
	f := Finding{ID: string(v.Cause), Title: v.Cause.Label(), Score: 1, Coverage: 1}
	for _, rule := range causeRules() {
		if rule.cause == v.Cause {
			f = rule.score(m)
			f.Score, f.Coverage, _ = symptomShares(f.Symptoms)
			break
		}
	}
	f.Cause, f.Confidence, f.Evidence = v.Cause, v.Confidence, v.Evidence
	f.Title = v.Cause.Label() // of a rule of whole profiles too
	return f
}

// excludedCause is the cause with the most evidence that is not among the findings. What a sandbox
// does is not compared with the state of its profile.
func excludedCause(m observation, rules []causeRule, found []Finding) []Finding {
	var best *Finding
	for _, rule := range rules {
		listed := slices.ContainsFunc(found, func(f Finding) bool { return f.ID == rule.id || f.Cause == rule.cause && f.ID != noOwner })
		if listed || rule.hintOnly || rule.wide && !found[0].Wide {
			continue
		}
		f := rule.score(m)
		f.Score, f.Coverage, f.Evidence = symptomShares(f.Symptoms)
		if f.Coverage > 0 && (best == nil || cmp.Or(cmp.Compare(f.Score, best.Score), cmp.Compare(f.Coverage, best.Coverage)) > 0) {
			best = &f
		}
	}
	if best == nil {
		return nil
	}
	best.Confidence = sandbox.ConfidenceUnknown
	return []Finding{*best}
}

// explainRanking says of each cause after the first why it is not the first.
func explainRanking(causes []Finding) {
	for i := 1; i < len(causes); i++ {
		causes[i].WhyNot = causes[i].whyNot(causes[0])
	}
}

// fewSymptoms is how many symptoms of a kind a sentence names.
const fewSymptoms = 2

func (f Finding) whyNot(first Finding) string {
	parts := []string{f.listSymptoms("not seen: ", sandbox.False), f.listSymptoms("not known: ", sandbox.Unknown)}
	if f.Cause == sandbox.CauseProvisioning {
		return "it is what happens, not why"
	}
	if first.ID == exitFinding {
		parts = append([]string{"its exit proves another cause"}, parts...)
	}
	if text := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; "); text != "" {
		return text
	}
	if f.Confidence == sandbox.Hint && first.Confidence != sandbox.Hint {
		return "its symptoms are seen, but they are common to other causes"
	}
	return fmt.Sprintf("its symptoms are seen; those of %q weigh more or rank first", first.Title)
}

// listSymptoms names the heaviest symptoms that have a verdict, with the figures compared.
func (f Finding) listSymptoms(head string, v sandbox.Verdict) string {
	var list []Symptom
	for _, s := range f.Symptoms {
		if s.Verdict == v && (!s.Support || s.Required) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return ""
	}
	slices.SortStableFunc(list, func(a, b Symptom) int { return cmp.Compare(b.Weight, a.Weight) })
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.Say
		if v == sandbox.False {
			texts[i] += formatEvidence(s.Evidence[:min(1, len(s.Evidence))])
		}
	}
	return head + sandbox.FormatFirst(texts, fewSymptoms)
}

// FleetCauses are the possible causes of trouble of a whole profile (the runbook's causes 3 to 5),
// the likeliest first. Answers are the flags of the profile.
func FleetCauses(f FleetSignals, answers []Flag, t Thresholds, now time.Time) []Finding {
	m := observation{sig: Signals{Fleet: &f}, t: t, now: now, answers: answers}
	var causes []Finding
	for _, rule := range fleetRules() {
		if found := rule.score(m); found.Confidence != sandbox.ConfidenceUnknown && found.Score > 0 {
			causes = append(causes, found)
		}
	}
	slices.SortStableFunc(causes, compareFindings)
	if len(causes) == 1 && causes[0].Confidence == sandbox.Probable {
		causes = append(causes, excludedCause(m, fleetRules(), causes)...)
	}
	explainRanking(causes)
	return causes
}

// fleetRules are the causes that figures of a profile can show.
func fleetRules() []causeRule {
	return []causeRule{
		{id: "cleanup_not_running", cause: sandbox.CauseOrphan, title: cleanupDead, symptoms: cleanupSymptoms},
		{id: "state_corruption", cause: sandbox.CauseGhost, title: recordsDiffer, symptoms: mismatchSymptoms},
		{id: exhaustion, cause: sandbox.CauseUnknown, title: resourcesGone, symptoms: fleetExhaustionSymptoms},
	}
}

// The flag of counters that do not add up (R18), by its name and in words.
const (
	CountsDifferID = "counts_differ"
	CountsDiffer   = "created minus destroyed differs from what exists"
)

// mismatchSymptoms has the signs of differing records that a whole profile shows. A leak at the
// provider makes its counters differ, too, so that they alone are a hint.
func mismatchSymptoms(m observation) []Symptom {
	differ := Symptom{Say: CountsDiffer, Weight: 2, Key: true, Verdict: sandbox.Unknown}
	if i := slices.IndexFunc(m.answers, func(f Flag) bool { return f.ID == CountsDifferID }); i >= 0 {
		f := m.answers[i]
		differ.Verdict, differ.Evidence = f.Verdict, f.Evidence
	}
	missing := m.counterSymptom("removals that failed with \"sandbox not found\"", 2, func(f *FleetSignals) *int64 { return f.CleanupNotFound })
	return []Symptom{
		asKey(missing),
		differ,
		asKey(m.counterSymptom("sandboxes that are listed as running and do not exist", 3, func(f *FleetSignals) *int64 { return f.Missing })),
	}
}

func fleetExhaustionSymptoms(m observation) []Symptom {
	return []Symptom{asKey(m.cannotCreate()), asKey(m.noneStarts()), asKey(asKnownQuota(m.quotaRunsShort()))}
}

// asKnownQuota counts a quota that was read and is far from full as a symptom that is not seen.
func asKnownQuota(s Symptom) Symptom {
	s.Support = false
	return s
}

// noneStarts is R108 for a profile: no sandbox is active, and some are in provisioning for longer
// than that may take.
func (m observation) noneStarts() Symptom {
	s := Symptom{Say: "all sandboxes are stuck in provisioning", Weight: 2, Verdict: sandbox.Unknown}
	f := m.sig.Fleet
	if f.Active == nil || f.OverProvisioningAge == nil {
		return s
	}
	s.Verdict = sandbox.VerdictOf(*f.Active == 0 && *f.OverProvisioningAge > 0)
	s.Evidence = []sandbox.Evidence{NumberEvidence("stuck in provisioning", float64(*f.OverProvisioningAge), "", "list", m.now)}
	return s
}
