package fleet

import (
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Facts is what an observation found, as plain data that depends on no threshold: who has the facts
// can judge the sandbox again.
type Facts struct {
	// AskedAt is when the record was found not to decide; zero = not known.
	AskedAt   time.Time
	Sandbox   sandbox.Sandbox
	Samples   []sandbox.Usage     // of this observation; nil = none could be read
	Logs      *triage.LogFindings // nil = not read
	Processes *int                // nil = not read
	Exited    bool                // the program that create started has exited
	Recorded  SandboxHistory
	Work      *providers.Activity // nil = no source reports it
	Answers   sandbox.Verdict     // of the probe; "" = not probed
	// SourceErr and LookErr are those of the observation.
	SourceErr, LookErr error
	Missing            bool
	TracksTasks        bool
	ProfileRead        bool     // the figures of its profile were read
	QuotaUsed          *float64 // of its profile; nil = not read
}

// mostKept is how many samples of an observation its facts have: those of ten minutes at the shortest
// interval of a provider. The facts of ten thousand sandboxes are held at once.
const mostKept = 120

// factsOf are the facts of an observation from which sig was made.
func (o Observation) factsOf(sig triage.Signals) *Facts {
	f := &Facts{
		Sandbox: o.Sandbox, Logs: sig.Logs, Processes: sig.Processes, Exited: o.Exit.Got != nil, Recorded: o.recorded,
		Answers: sig.Answers, SourceErr: o.SourceErr(), LookErr: o.LookErr(), Missing: o.missing, TracksTasks: o.tracksTasks,
	}
	if o.Usage.Err == nil {
		f.Samples = o.Usage.Got
		if most := max(0, len(f.Samples)-mostKept); most > 0 { // those before them can be freed
			f.Samples = slices.Clone(f.Samples[most:])
		}
	}
	if o.Work.Err == nil {
		f.Work = &o.Work.Got
	}
	if sig.Fleet != nil {
		f.ProfileRead, f.QuotaUsed = true, sig.Fleet.QuotaUsed
	}
	return f
}

// Observation is one that has these facts, in a profile with these figures at a time.
func (f Facts) Observation(profile *ProfileFigures, at time.Time) Observation {
	o := Observation{Sandbox: f.Sandbox, recorded: f.Recorded, logFindings: f.Logs, missing: f.Missing, tracksTasks: f.TracksTasks}
	o.Usage.Got, o.Health.Got.Verdict = f.Samples, f.Answers
	unread := errNotAsked
	if f.LookErr != nil {
		unread = f.LookErr
	}
	if len(f.Samples) == 0 {
		o.Usage.Err = unread
	}
	if f.Logs == nil {
		o.Logs.Err = unread
	}
	if f.Answers == "" {
		o.Health.Err = unread
	}
	if o.Processes.Err = unread; f.Processes != nil {
		o.Processes.Got, o.Processes.Err = make([]providers.Process, *f.Processes), nil
	}
	if o.Work.Err = f.SourceErr; f.Work != nil {
		o.Work.Got = *f.Work
	} else if f.SourceErr == nil {
		o.Work.Err = fault.New(fault.KindUnsupported, "no source reports its activity")
	}
	if f.Exited {
		o.Exit.Got = &sandbox.Exit{}
	}
	if f.ProfileRead {
		o.profileSignals = func(stuckAge time.Duration) *triage.FleetSignals {
			sig := profile.signals(stuckAge, at)
			sig.QuotaUsed = f.QuotaUsed
			return &sig
		}
	}
	return o
}

// ProfileFigures are what the observations of one profile know of it.
type ProfileFigures struct {
	records triage.FleetSignals
	count   *listingCount
}

// NewProfileFigures are the records of a profile and the counts of its complete listing; items is
// nil where there was none.
func NewProfileFigures(records triage.FleetSignals, items []sandbox.Sandbox, at time.Time) *ProfileFigures {
	p := &ProfileFigures{records: records}
	p.records.MaxSandboxes = nil // the configuration, which only the figures of the profile itself have
	if items != nil {
		p.count = countListing(ProviderStats{Items: items}.Listed(), len(items), at)
	}
	return p
}

func (p *ProfileFigures) signals(stuckAge time.Duration, now time.Time) triage.FleetSignals {
	sig := p.records
	if p.count != nil {
		stats := p.count.stats()
		sig.Active, sig.Provisioning, sig.Terminating = stats.Active, stats.Provisioning, stats.Terminating
		sig.OverStuckAge = p.count.olderThan(stuckAge, now)
		addSample(&sig, now)
	}
	return sig
}

// Recorded is a row of a listing with what was observed of it.
type Recorded struct {
	Row   sandbox.Sandbox
	At    time.Time // when it was judged
	Facts *Facts    // nil = it was not observed
}

// JudgeRecorded is Judge with Look and Usage, for sandboxes that were observed before: an observation
// counts only where Judge would make one.
func JudgeRecorded(items []Recorded, profile *ProfileFigures, thresholds func(sandbox.Sandbox) triage.Thresholds) []Judged {
	judged := make([]Judged, len(items))
	for i, r := range items {
		t, first := thresholds(r.Row), r.At
		if r.Facts != nil && !r.Facts.AskedAt.IsZero() {
			first = r.Facts.AskedAt
		}
		judged[i] = Judged{Sandbox: r.Row, At: first, Facts: r.Facts, Verdict: triage.Judge(r.Row, triage.Signals{}, t, first)}
		switch {
		case r.Facts == nil:
		case judged[i].Verdict.NeedsLook():
			judged[i] = r.Facts.Observation(profile, r.At).judged(t, r.At)
		case worksOn(judged[i], t) && len(r.Facts.Samples) > 0:
			judged[i] = r.Facts.usageOf(r.Row).Observation(profile, r.At).judged(t, r.At)
		}
	}
	return judged
}

// usageOf is what ObserveUsage would have found.
func (f Facts) usageOf(row sandbox.Sandbox) Facts {
	return Facts{Sandbox: row, Samples: f.Samples, Recorded: f.Recorded, TracksTasks: f.TracksTasks, Work: &providers.Activity{}}
}

// askedAt adds when the record was found not to decide.
func (j Judged) askedAt(at time.Time) Judged {
	j.Facts.AskedAt = at
	return j
}

// judged is the judgement of an observed sandbox.
func (o Observation) judged(t triage.Thresholds, now time.Time) Judged {
	sig := o.Signals(t)
	return Judged{
		Sandbox: o.Sandbox, At: now, Verdict: triage.Judge(o.Sandbox, sig, t, now), Failed: o.FailedErr(), Look: o.Look(t),
		Signals: sig, Facts: o.factsOf(sig), Answered: o.Answers(),
	}
}
