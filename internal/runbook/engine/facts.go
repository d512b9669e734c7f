package engine

import (
	"time"

	"sbx/internal/check"
	"sbx/internal/ops/look"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// facts are what was read since the last change: of each provider, and of all together. After an act
// nothing of them holds.
type facts struct {
	names      []string // the selected providers
	limits     func(provider string) triage.Thresholds
	byProvider map[string]*runbook.Facts

	diagnosis *look.DiagnoseResult // of all sandboxes; nil = not read
	inspected *look.DiagnoseResult // of the one that was named
	verified  *look.VerifyResult

	readAt map[source]time.Time
	// once are the sources that some step has read, also where what they gave is stale.
	once map[source]bool
}

func newFacts(names []string, limits func(string) triage.Thresholds) *facts {
	f := &facts{names: names, limits: limits, once: make(map[source]bool)}
	f.invalidate()
	return f
}

// invalidate forgets everything that was read.
func (f *facts) invalidate() {
	f.byProvider, f.readAt = map[string]*runbook.Facts{}, make(map[source]time.Time)
	f.diagnosis, f.inspected, f.verified = nil, nil, nil
	for _, name := range f.names {
		f.of(name)
	}
}

// of are the facts of one provider; a new one has its limits, and nothing was read.
func (f *facts) of(provider string) *runbook.Facts {
	have := f.byProvider[provider]
	if have == nil {
		have = &runbook.Facts{Subject: check.Subject{Provider: provider, Limits: f.limits(provider)}}
		f.byProvider[provider] = have
	}
	return have
}

// each are the facts of the selected providers, in their order.
func (f *facts) each() []*runbook.Facts {
	all := make([]*runbook.Facts, len(f.names))
	for i, name := range f.names {
		all[i] = f.of(name)
	}
	return all
}

// addSubjects adds figures; one that a read does not know leaves that of another read.
func (f *facts) addSubjects(subjects []check.Subject) {
	for _, s := range subjects {
		have := f.of(s.Provider)
		have.Limits = s.Limits
		for _, figure := range []struct {
			to   **int64
			from *int64
		}{
			{&have.Stuck, s.Stuck},
			{&have.Unjudged, s.Unjudged},
			{&have.Orphans, s.Orphans},
			{&have.Corrupt, s.Corrupt},
			{&have.Figures.Active, s.Figures.Active},
			{&have.Figures.Provisioning, s.Figures.Provisioning},
			{&have.Figures.CleanupFailures, s.Figures.CleanupFailures},
			{&have.Figures.CreateFailures, s.Figures.CreateFailures},
		} {
			if figure.from != nil {
				*figure.to = figure.from
			}
		}
		if s.Figures.OverFor != (triage.OverFor{}) {
			have.Figures.OverFor = s.Figures.OverFor
		}
		if s.Figures.QuotaUsed != nil {
			have.Figures.QuotaUsed = s.Figures.QuotaUsed
		}
		addRates(&have.Figures, s.Figures)
	}
}

// addRates adds the counts of which rates are made, each with its whole.
func addRates(have *triage.FleetSignals, more triage.FleetSignals) {
	if more.TotalDestroyed != nil {
		have.TotalDestroyed, have.TimedOut = more.TotalDestroyed, more.TimedOut
	}
	if more.Attempts != nil {
		have.Attempts, have.AttemptsTimedOut, have.AttemptsInactive = more.Attempts, more.AttemptsTimedOut, more.AttemptsInactive
	}
	if more.Stops != nil {
		have.Stops, have.StopsFailed = more.Stops, more.StopsFailed
	}
}

// addCauses takes the first cause of a diagnosis. Where it could read everything and named none, that
// is known, too.
func (f *facts) addCauses(d *look.DiagnoseResult) {
	cause, confidence := "", sandbox.ConfidenceUnknown
	switch {
	case len(d.Causes) > 0:
		cause, confidence = possibleCauseOf(d.Causes[0]), d.Causes[0].Confidence
	case len(d.Errors) == 0:
		cause = runbook.NoCause
	}
	for _, have := range f.each() {
		have.Cause, have.Confidence = cause, confidence
	}
}

// addSandbox makes the named sandbox the one of conditions.
func (f *facts) addSandbox(r *look.InspectResult) {
	figures := &selector.Figures{Err: r.Seen.Usage.Err}
	if r.Used != nil {
		figures.Trend = r.Used.Trend
		figures.Last = r.Seen.Usage.Got[len(r.Seen.Usage.Got)-1]
		figures.Err = nil
	}
	for _, have := range f.each() {
		have.Sandbox = selector.NewSubject(r.Seen.Sandbox, r.At, r.Verdict, figures)
	}
}

// possibleCauseOf is the id of a cause as runbooks name it: of what an exit proves the cause itself.
func possibleCauseOf(f triage.Finding) string {
	if f.ID == possibleCauseExit {
		return string(f.Cause)
	}
	return f.ID
}

// possibleCauseExit is the id of what an exit proves.
const possibleCauseExit = "exit"
