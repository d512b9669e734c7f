package triage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// The grades of a cause by its symptoms. Symptoms never make a cause certain, only an
// exit does.
const (
	likelyScore   = 0.75 // least score of a probable cause
	hintScore     = 0.5  // least score of a hint
	enoughCovered = 0.5  // with a smaller coverage a cause is a hint at most
)

// Finding is one possible cause and its evidence.
type Finding struct {
	ID         string // of the rule: "infinite_loop"; "exit" for what the exit proves
	Cause      sandbox.Cause
	Title      string
	Score      float64 // 0..1: weight of the symptoms seen / weight of those known
	Coverage   float64 // 0..1: weight of the symptoms known / weight of all
	Confidence sandbox.Confidence
	Symptoms   []Symptom
	Evidence   []sandbox.Evidence // of the symptoms seen
	Wide       bool               // a fault of the whole profile
	WhyNot     string             // of a cause that is not the first: what speaks against it; see Causes
}

// Symptom is one sign of a cause.
type Symptom struct {
	Say     string
	Weight  int
	Verdict sandbox.Verdict
	// Support marks a sign whose absence proves nothing, such as a log message: it counts
	// only when it is seen.
	Support bool
	// Required marks a sign without which the cause is excluded.
	Required bool
	// Key marks the signs that are specific to the cause: where a rule has any, one of
	// them must be seen. The other signs are common to many causes.
	Key      bool
	Evidence []sandbox.Evidence
}

// rankCauses ranks the possible causes of trouble, the likeliest first. A cause that the
// exit proves precedes all others. Causes without evidence are left out; an empty list
// means that no trouble is known.
func rankCauses(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) []Finding {
	m := observation{s: s, sig: sig, t: t, now: now}
	var ranked []Finding
	for _, rule := range causeRules() {
		if f := rule.score(m); f.Score > 0 {
			ranked = append(ranked, f)
		}
	}
	slices.SortStableFunc(ranked, compareFindings)
	ranked = append(reportedTroubles(s), ranked...)
	if f, known := findingFromExit(s.Exit); known {
		return append([]Finding{f}, ranked...)
	}
	return ranked
}

// reportedTroubles are the findings that the record itself names.
func reportedTroubles(s sandbox.Sandbox) []Finding {
	var all []Finding
	for _, t := range s.Troubles {
		all = append(all, Finding{ID: reportedFinding + t.ID, Cause: t.Cause, Title: t.Say, Score: 1, Coverage: 1, Confidence: t.Confidence, Evidence: t.Evidence})
	}
	return all
}

// reportedFinding begins the ID of a finding that the provider reports.
const reportedFinding = "reported_"

func (f Finding) isReported() bool { return strings.HasPrefix(f.ID, reportedFinding) }

func compareFindings(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(confidenceRank(b.Confidence), confidenceRank(a.Confidence)),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.Coverage, a.Coverage),
	)
}

func confidenceRank(c sandbox.Confidence) int {
	return slices.Index([]sandbox.Confidence{sandbox.Hint, sandbox.Probable, sandbox.Certain}, c)
}

// scoreSymptoms computes score and coverage. A support that is not seen counts neither as
// known nor as missing; a required symptom that is false, or no key symptom seen among
// several, gives score 0.
func scoreSymptoms(symptoms []Symptom) Finding {
	f := Finding{Symptoms: symptoms, Confidence: sandbox.ConfidenceUnknown}
	if ruledOut(symptoms) {
		return f
	}
	f.Score, f.Coverage, f.Evidence = symptomShares(symptoms)
	f.Confidence = gradeScore(f.Score, f.Coverage)
	return f
}

// symptomShares are the shares of the weight that was seen, and known, and the evidence of what was
// seen.
func symptomShares(symptoms []Symptom) (score, coverage float64, evidence []sandbox.Evidence) {
	var seen, known, all int
	for _, s := range symptoms {
		if s.Support && s.Verdict != sandbox.True {
			continue
		}
		all += s.Weight
		switch s.Verdict {
		case sandbox.True:
			seen += s.Weight
			known += s.Weight
			evidence = append(evidence, s.Evidence...)
		case sandbox.False:
			known += s.Weight
		case sandbox.Unknown:
		}
	}
	if known == 0 {
		return 0, 0, nil
	}
	return float64(seen) / float64(known), float64(known) / float64(all), evidence
}

func ruledOut(symptoms []Symptom) bool {
	keys, turned := 0, 0
	for _, s := range symptoms {
		switch {
		case s.Required && s.Verdict == sandbox.False:
			return true
		case s.Key && s.Verdict == sandbox.True:
			turned++
		}
		if s.Key {
			keys++
		}
	}
	return keys > 0 && turned == 0
}

func gradeScore(score, coverage float64) sandbox.Confidence {
	switch {
	case score >= likelyScore && coverage >= enoughCovered:
		return sandbox.Probable
	case score >= hintScore:
		return sandbox.Hint
	}
	return sandbox.ConfidenceUnknown
}

// findingFromExit returns what an exit proves, with the confidence of the exit.
func findingFromExit(e *sandbox.Exit) (Finding, bool) {
	if e == nil || e.Cause == sandbox.CauseNone || e.Cause == sandbox.CauseUnknown {
		return Finding{}, false
	}
	return Finding{
		ID: exitFinding, Cause: e.Cause, Title: e.Cause.Label(),
		Score: 1, Coverage: 1, Confidence: e.Confidence, Evidence: e.Evidence,
	}, true
}

// observation is the input of a cause rule.
type observation struct {
	s   sandbox.Sandbox
	sig Signals
	t   Thresholds
	now time.Time

	answers []Flag // of the profile: what its figures come to; nil = they were not judged
}

// causeRule is one cause of the runbook with its symptoms.
type causeRule struct {
	id       string
	cause    sandbox.Cause
	title    string
	symptoms func(observation) []Symptom
	hintOnly bool // its symptoms are too weak for more than a hint
	wide     bool // it is a fault of the whole profile, not of one sandbox
}

// score is the finding of a rule.
func (r causeRule) score(m observation) Finding {
	f := scoreSymptoms(r.symptoms(m))
	f.ID, f.Cause, f.Title, f.Wide = r.id, r.cause, r.title, r.wide
	if r.hintOnly && f.Confidence == sandbox.Probable {
		f.Confidence = sandbox.Hint
	}
	return f
}

// noOwner is the ID of the finding that nobody owns a sandbox.
const noOwner = "no_owner"

// The names of what ails a profile, which is no cause of one sandbox.
const (
	cleanupDead   = "cleanup job does not run"
	recordsDiffer = "records and reality differ"
	resourcesGone = "provider resources exhausted"
)

// causeRules lists the runbook's five causes and those that a process of the local
// provider adds. Weights are estimates: 3 is a symptom specific to the cause, 1 one that
// other causes share. Among equals the earlier rule ranks first.
func causeRules() []causeRule {
	return []causeRule{
		{id: "memory_leak", cause: sandbox.CauseLeak, title: sandbox.CauseLeak.Label(), symptoms: leakSymptoms},
		{id: "process_limit", cause: sandbox.CauseProcessLimit, title: sandbox.CauseProcessLimit.Label(), symptoms: processLimitSymptoms},
		{id: "infinite_loop", cause: sandbox.CauseBusyLoop, title: sandbox.CauseBusyLoop.Label(), symptoms: loopSymptoms},
		{id: "external_hang", cause: sandbox.CauseHungIO, title: sandbox.CauseHungIO.Label(), symptoms: hangSymptoms},
		{id: "silent", cause: sandbox.CauseSilent, title: sandbox.CauseSilent.Label(), symptoms: idleSymptoms},
		{id: "cleanup_not_running", wide: true, cause: sandbox.CauseOrphan, title: cleanupDead, symptoms: cleanupSymptoms},
		{id: "state_corruption", cause: sandbox.CauseGhost, title: recordsDiffer, symptoms: corruptionSymptoms},
		{id: exhaustion, wide: true, cause: sandbox.CauseUnknown, title: resourcesGone, symptoms: exhaustionSymptoms},
		{id: noOwner, cause: sandbox.CauseOrphan, title: sandbox.CauseOrphan.Label(), symptoms: ownerlessSymptoms, hintOnly: true},
	}
}

// PossibleCause is a cause that a diagnosis may name, whatever a sandbox shows.
type PossibleCause struct {
	ID    string // of its findings
	Title string
	// Symptoms are the signs that are looked for, without a verdict; none for what an exit proves.
	Symptoms []Symptom
}

// PossibleCauses are the causes that Causes and FleetCauses may name.
func PossibleCauses() []PossibleCause {
	var all []PossibleCause
	for _, r := range causeRules() {
		all = append(all, PossibleCause{r.id, r.title, r.symptoms(observation{t: DefaultThresholds()})})
	}
	for _, c := range sandbox.Causes() {
		if c != sandbox.CauseNone && c != sandbox.CauseUnknown && !slices.ContainsFunc(causeRules(), func(r causeRule) bool { return r.cause == c }) {
			t := PossibleCause{ID: string(c), Title: c.Label()}
			if c == sandbox.CauseOOMChild { // a branch of its own
				t.Title += ", in a child process"
			}
			all = append(all, t)
		}
	}
	return all
}

// PossibleCauseLabel is the name of a theory, as every surface has it: "busy loop".
func PossibleCauseLabel(id string) string {
	for _, r := range causeRules() {
		if r.id == id {
			return r.title
		}
	}
	return sandbox.Cause(id).Label()
}

func loopSymptoms(m observation) []Symptom {
	return []Symptom{
		asKey(asRequired(m.cpuAtLimit())), m.neverCompletes(), m.noErrors(), m.manyOperations(), m.noProgress(),
		asKey(m.loggedSymptom(2, "recursion")), asKey(m.loggedSymptom(2, "iterations")),
	}
}

// processLimitSymptoms are the kernel's counter of refusals and what programs print then. The counter is for life: it
// counts while the limit is nearly used, or where the log shows a refusal.
func processLimitSymptoms(m observation) []Symptom {
	return []Symptom{asKey(m.tasksRefused()), asKey(m.loggedSymptom(3, "process_limit"))}
}

// hangSymptoms needs more than an idle processor: a machine that has just booted is idle too.
func hangSymptoms(m observation) []Symptom {
	return []Symptom{
		asRequired(m.cpuAtRest(3)), asKey(asRequired(m.silentSymptom(1))), asKey(m.lastCall()), asKey(m.waitsForPeer()),
		asKey(m.loggedSymptom(2, "operation_timed_out")), asKey(m.loggedSymptom(2, "request_timeout")),
	}
}

// leakSymptoms uses slope and share of the limit: growth far below the limit is a hint,
// since the program may be filling a cache.
func leakSymptoms(m observation) []Symptom {
	return []Symptom{
		asKey(asRequired(m.memoryGrows())), m.fillsUp(),
		m.loggedSymptom(2, "out_of_memory"), m.loggedSymptom(1, "resource_warning"),
	}
}

// idleSymptoms needs an idle processor and silence, and differs from a hang in that
// nothing outside is waited for.
func idleSymptoms(m observation) []Symptom {
	peer, call := m.waitsForPeer(), m.lastCall()
	nothing := Symptom{Say: "waits for no external service", Weight: 3, Verdict: peer.Verdict.Negated(), Evidence: m.waitEvidence()}
	if call.Verdict == sandbox.True && nothing.Verdict == sandbox.Unknown {
		nothing.Verdict = sandbox.False
	}
	return []Symptom{asKey(asRequired(m.silentSymptom(2))), asRequired(m.cpuAtRest(2)), nothing}
}

func cleanupSymptoms(m observation) []Symptom {
	return []Symptom{m.oldOnesPile(), asKey(m.noCleanupSeen()), asKey(m.activeGrows()), asKey(m.loggedSymptom(2, "cleanup_failed"))}
}

func corruptionSymptoms(m observation) []Symptom {
	return []Symptom{
		m.missingAtProvider(),
		m.runsAfterItsEnd(),
		{Say: "record and process disagree", Weight: 2, Verdict: m.sig.Agrees.Negated()},
		m.loggedSymptom(2, "sandbox_not_found"),
	}
}

func exhaustionSymptoms(m observation) []Symptom {
	return []Symptom{
		m.cannotCreate(), m.allProvisioning(), m.quotaRunsShort(),
		m.loggedSymptom(3, "resource_limit"), m.loggedSymptom(3, "sandbox_limit"),
	}
}

// ownerlessSymptoms relies on one sign that proves little by itself (R29).
func ownerlessSymptoms(m observation) []Symptom {
	f := flagNoOwner(m.s, m.sig)
	switch {
	case !m.isRunning():
		f.Verdict = sandbox.Unknown
	case m.s.Owner != "": // a person or sbx itself, without a task
		f.Verdict = sandbox.False
	}
	return []Symptom{
		{Say: f.Say, Weight: 2, Key: true, Verdict: f.Verdict},
		{Say: "shows no activity either", Weight: 1, Support: true, Verdict: m.showsLife().Negated()},
	}
}

func asKey(s Symptom) Symptom {
	s.Key = true
	return s
}

func asRequired(s Symptom) Symptom {
	s.Required = true
	return s
}
