package triage

import (
	"cmp"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// The grades of a cause by its symptoms. Symptoms never make a cause certain:
// only what is known of an exit does.
const (
	likelyScore   = 0.75 // from here on a cause is probable
	hintScore     = 0.5  // from here on it is a hint
	enoughCovered = 0.5  // with less known than this it is a hint at most
)

// Finding is one possible cause and what speaks for it.
type Finding struct {
	ID         string        // of the theory: "infinite_loop"; "exit" for what the exit proves
	Cause      sandbox.Cause // in the closed list of words
	Title      string
	Score      float64 // 0..1: weights of the symptoms seen, of those known
	Coverage   float64 // 0..1: weights of the symptoms known, of all
	Confidence sandbox.Confidence
	Symptoms   []Symptom
	Evidence   []sandbox.Evidence // of the symptoms seen
}

// Symptom is one sign of a cause.
type Symptom struct {
	Row     string // the ACCEPTANCE row
	Say     string
	Weight  int
	Verdict sandbox.Verdict
	// Support marks a sign whose absence proves nothing, such as a log
	// message: it counts only when it is seen.
	Support bool
	// Must marks a sign without which it cannot be this cause.
	Must bool
	// Key marks the signs that name the cause: where a theory has any, one of
	// them must be seen. The others are common to many causes.
	Key      bool
	Evidence []sandbox.Evidence
}

// rankCauses ranks what may be wrong with a sandbox, the likeliest first. What its
// exit proves stands before every symptom. Causes that nothing speaks for are
// left out; an empty list means that nothing is known to be wrong.
func rankCauses(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) []Finding {
	m := matter{s, sig, t, now}
	var ranked []Finding
	for _, th := range theories() {
		f := weigh(th.symptoms(m))
		f.ID, f.Cause, f.Title = th.id, th.cause, th.title
		if th.hintOnly && f.Confidence == sandbox.Probable {
			f.Confidence = sandbox.Hint
		}
		if f.Score > 0 {
			ranked = append(ranked, f)
		}
	}
	slices.SortStableFunc(ranked, compareFindings)
	if f, known := fromExit(s.Exit); known {
		return append([]Finding{f}, ranked...)
	}
	return ranked
}

func compareFindings(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(strength(b.Confidence), strength(a.Confidence)),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.Coverage, a.Coverage),
	)
}

func strength(c sandbox.Confidence) int {
	switch c {
	case sandbox.Certain:
		return 3
	case sandbox.Probable:
		return 2
	case sandbox.Hint:
		return 1
	case sandbox.ConfidenceUnknown:
	}
	return 0
}

// weigh turns symptoms into a score. A support that is not seen counts neither
// as known nor as missing; a must that is false, or no key among several seen,
// leaves no score.
func weigh(symptoms []Symptom) Finding {
	f := Finding{Symptoms: symptoms, Confidence: sandbox.ConfidenceUnknown}
	if ruledOut(symptoms) {
		return f
	}
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
			f.Evidence = append(f.Evidence, s.Evidence...)
		case sandbox.False:
			known += s.Weight
		case sandbox.Unknown:
		}
	}
	if known > 0 {
		f.Score, f.Coverage = float64(seen)/float64(known), float64(known)/float64(all)
	}
	f.Confidence = grade(f.Score, f.Coverage)
	return f
}

func ruledOut(symptoms []Symptom) bool {
	keys, turned := 0, 0
	for _, s := range symptoms {
		switch {
		case s.Must && s.Verdict == sandbox.False:
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

func grade(score, coverage float64) sandbox.Confidence {
	switch {
	case score >= likelyScore && coverage >= enoughCovered:
		return sandbox.Probable
	case score >= hintScore:
		return sandbox.Hint
	}
	return sandbox.ConfidenceUnknown
}

// fromExit takes over what an exit proves, with the confidence it has there.
func fromExit(e *sandbox.Exit) (Finding, bool) {
	if e == nil || e.Cause == sandbox.CauseNone || e.Cause == sandbox.CauseUnknown {
		return Finding{}, false
	}
	return Finding{
		ID: exitFinding, Cause: e.Cause, Title: exitTitle(e.Cause),
		Score: 1, Coverage: 1, Confidence: e.Confidence, Evidence: e.Evidence,
	}, true
}

func exitTitle(c sandbox.Cause) string {
	switch c {
	case sandbox.CauseOOM:
		return "the kernel killed it: out of memory"
	case sandbox.CauseOOMChild:
		return "the kernel killed one of its processes: out of memory"
	case sandbox.CauseRuntimeHeap:
		return "the language runtime's heap was full"
	case sandbox.CauseMemoryWatchdog:
		return "the watchdog killed it: over its memory limit"
	case sandbox.CauseTimeout:
		return "its time limit was reached"
	case sandbox.CauseInactivity:
		return "it was inactive for too long"
	case sandbox.CauseStopped:
		return "it was stopped"
	case sandbox.CauseSupervisorLost:
		return "its supervisor died"
	default:
		return "its end speaks for " + string(c)
	}
}
