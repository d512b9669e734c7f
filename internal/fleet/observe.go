package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

const (
	tailLines      = 200         // lines read for the rules: four times the 50 that they compare with each other
	extendInterval = time.Second // between additional samples
	probeInterval  = time.Second // between probes that are repeated
	// longestStep is the longest time between two samples that a provider stores.
	longestStep = time.Minute
)

// Part is the result of one query of a provider, or its error.
type Part[T any] struct {
	Got T
	Err error
}

// Observation is what was observed of one sandbox in addition to its record.
type Observation struct {
	Sandbox sandbox.Sandbox // the record with what the parts add to it
	Usage   Part[[]sandbox.Usage]
	Health  Part[providers.Health]
	Events  Part[[]sandbox.Event]
	Logs    Part[[]sandbox.LogLine]
	// CapturesOutput says that Logs hold the output of every program of the sandbox.
	CapturesOutput bool
	Processes      Part[[]providers.Process]
	Exit           Part[*sandbox.Exit] // of the program that create started, where the record has none
	Work           Part[providers.Activity]

	recorded       SandboxHistory                           // what is recorded of it
	profileSignals func(time.Duration) *triage.FleetSignals // what is recorded of its profile, by the stuck age; nil = not read

	logsAt      time.Time           // when Logs were asked for; zero = they were not
	missing     bool                // its provider lists it and does not have it
	tracksTasks bool                // its provider names the task or agent of a sandbox if there is one
	logFindings *triage.LogFindings // of Logs; nil = not read yet
}

// Observe queries everything and changes nothing. What it queries beyond
// ObserveLife is for people to read; both give the same verdict.
func (f *Fleet) Observe(ctx context.Context, s sandbox.Sandbox) Observation {
	o := f.newObservation(s)
	f.observeLife(ctx, providers.Look(ctx), &o, asking{exit: s.Exit == nil, probe: true, events: true})
	if o.Exit.Got != nil {
		o.Sandbox.Exit = o.Exit.Got
	}
	o.addActivity()
	o.limitLogEvidence()
	f.conclude(ctx, &o)
	return o
}

// conclude does what an observation ends with.
func (f *Fleet) conclude(ctx context.Context, o *Observation) {
	o.readLogs(triage.NewMatcher())
	f.settleMissing(ctx, o)
	f.o.History.SandboxSeen(*o)
}

// ObserveLife queries only what shows whether a sandbox works: usage, output, and the
// records of a control plane. It changes nothing.
func (f *Fleet) ObserveLife(ctx context.Context, s sandbox.Sandbox) Observation {
	return f.ObserveLifeWithSamples(ctx, s, nil)
}

// ObserveLifeWithSamples is ObserveLife for a caller with samples of its own: they are used
// where the provider stores none.
func (f *Fleet) ObserveLifeWithSamples(ctx context.Context, s sandbox.Sandbox, samples []sandbox.Usage) Observation {
	return f.observeSigns(ctx, providers.Look(ctx), f.newObservation(s), samples)
}

// observeSigns observes what ObserveLife does, as far as it is not known. look is providers.Look of ctx.
func (f *Fleet) observeSigns(ctx, look context.Context, o Observation, samples []sandbox.Usage) Observation {
	s := o.Sandbox
	f.observeLife(ctx, look, &o, asking{exit: s.State == sandbox.StateRunning && mayHaveProgram(s), samples: samples})
	o.addActivity()
	o.limitLogEvidence()
	f.conclude(ctx, &o)
	return o
}

// mayHaveProgram says that create may have started a program in a sandbox, which may have ended. Where a
// provider keeps few labels, that of the owner is the only one.
func mayHaveProgram(s sandbox.Sandbox) bool {
	return s.Labels[sandbox.LabelRun] != "" || s.Labels[sandbox.LabelOwner] != ""
}

// limitLogEvidence ignores the silence of the log where a process runs whose output is not
// in it, or where the processes could not be listed.
func (o *Observation) limitLogEvidence() {
	switch {
	case errors.Is(o.Processes.Err, errNotAsked), fault.KindOf(o.Processes.Err) == fault.KindUnsupported:
	case o.Processes.Err != nil, len(o.Processes.Got) > 0:
		o.CapturesOutput = false
		o.Sandbox.ActivityBasis = sandbox.BasisUnknown
	}
}

// errNotAsked is the error of a query that was not needed.
var errNotAsked = errors.New("not queried")

func (f *Fleet) newObservation(s sandbox.Sandbox) Observation {
	o := Observation{Sandbox: s, CapturesOutput: f.capturesOutput(s)}
	o.tracksTasks = f.tracksTasks(s.Provider)
	o.Health.Err, o.Processes.Err = errNotAsked, errNotAsked
	return o
}

// capturesOutput reports whether the log of a sandbox holds the output of every program in it.
func (f *Fleet) capturesOutput(s sandbox.Sandbox) bool {
	_, reader, err := requireAbility[providers.LogReader](f, s.Provider, "logs")
	return err == nil && reader.CapturesOutput(s)
}

// tracksTasks reports whether a profile would name the task of a sandbox if there were one:
// sbx records what it creates sandboxes for, and so do the records of a control plane (R29).
func (f *Fleet) tracksTasks(profile string) bool {
	_, _, err := requireAbility[providers.Launcher](f, profile, "create")
	return err == nil || f.HasRecords(profile)
}

// readLogs applies the rules to the output once, since a caller may judge several times.
func (o *Observation) readLogs(m *triage.Matcher) {
	found := triage.ReadLines(m, o.Logs.Got)
	found.Complete = o.CapturesOutput
	if !o.logsAt.IsZero() {
		found.ReadAt = o.Sandbox.Clock(o.logsAt)
	}
	o.logFindings = &found
}

// addActivity counts the work that a control plane reports as activity; a heartbeat is none.
func (o *Observation) addActivity() {
	basis := sandbox.BasisUnknown
	if o.Work.Err == nil && !o.Sandbox.State.Ended() {
		basis = sandbox.BasisReports
	}
	o.Sandbox = o.Sandbox.WithActivity(o.Work.Got.LastWorkAt, basis)
}

// SourceErr is why a source that may have seen work failed; nil where all answered, or no
// source knows the sandbox.
func (o Observation) SourceErr() error {
	if couldNotBeAsked(o.Work.Err) {
		return o.Work.Err
	}
	return nil
}

// couldNotBeAsked reports whether a source failed. A source without the ability, or that
// does not know the sandbox, has answered.
func couldNotBeAsked(err error) bool {
	switch fault.KindOf(err) {
	case fault.KindNone, fault.KindUnsupported, fault.KindNotFound, fault.KindGone:
		return false
	default:
		return true
	}
}

// LookErr is why one of the queries of the sandbox itself failed that may have shown work: of usage,
// output, processes, or the probe. It fails also for one sandbox alone, with a 404 for what still runs,
// and where usage has no figure of the processor. A missing ability is no failure. Nothing inside could
// have answered where the probe shows that nothing does, or where the sandbox is gone.
func (o Observation) LookErr() error {
	for _, err := range []error{o.Usage.Err, o.Logs.Err, o.Processes.Err, o.Health.Err} {
		switch {
		case err == nil, errors.Is(err, errNotAsked), fault.KindOf(err) == fault.KindUnsupported:
		case showsAbsence(err) && (o.missing || o.Sandbox.State.Ended()):
		case fault.AboutOneSandbox(err) && !fault.Interrupted(err) && o.nothingAnswers():
		default:
			return err
		}
	}
	if o.Usage.Err == nil && o.Sandbox.State == sandbox.StateRunning && len(o.Usage.Got) > 0 && !slices.ContainsFunc(o.Usage.Got, sandbox.Usage.HasProcessor) {
		return fault.New(fault.KindUnavailable, "the usage of %s has no figure of its processor", o.Sandbox.ID).At(o.Sandbox.Provider, "usage")
	}
	return nil
}

// FailedErr is SourceErr or LookErr.
func (o Observation) FailedErr() error { return cmp.Or(o.SourceErr(), o.LookErr()) }

// notLooked says that the look ended, at a limit or by an interrupt, before this sandbox had answered.
func (l FailedLook) notLooked() bool { return fault.Interrupted(l.Err) }

// FailedLook is a sandbox without a verdict, and why: see Observation.FailedErr.
type FailedLook struct {
	Profile string
	Err     error // nil = no source failed
}

// FailedLooks summarizes why sandboxes have no verdict: one error per profile and kind, and
// fault.KindPartial for those that were not looked at.
func FailedLooks(unjudged []FailedLook) []error {
	type failure struct {
		profile   string
		kind      fault.Kind
		notLooked bool
	}
	count, first := map[failure]int{}, map[failure]error{}
	var order []failure
	for _, l := range unjudged {
		if l.Err == nil {
			continue
		}
		at := failure{l.Profile, fault.KindOf(l.Err), false}
		if l.notLooked() {
			at = failure{l.Profile, fault.KindPartial, true}
		}
		if count[at]++; count[at] == 1 {
			order, first[at] = append(order, at), l.Err
		}
	}
	errs := make([]error, 0, len(order))
	for _, at := range order {
		if at.notLooked {
			errs = append(errs, fault.New(at.kind, "not looked at: %d of %s, since the look ended before they had answered", count[at], at.profile).
				At(at.profile, "look").WithHint("the others were judged; `--provider`, `--older-than` and other selectors look at fewer"))
			continue
		}
		errs = append(errs, fault.New(at.kind, "%s, since a source that may have seen activity does not answer: %w", notJudged(count[at]), first[at]).
			At(at.profile, "activity").WithHint("`sbx doctor` checks the source; `sbx cleanup --ignore-activity` uses age only"))
	}
	return errs
}

func notJudged(n int) string {
	if n == 1 {
		return "1 sandbox was not judged"
	}
	return strconv.Itoa(n) + " sandboxes were not judged"
}

// Signals returns the input of the rules, without the parts that failed, so that what is not
// known stays unknown.
func (o Observation) Signals(t triage.Thresholds) triage.Signals {
	sig := triage.Signals{Looked: true, Exists: sandbox.VerdictOf(!o.missing), TracksTasks: o.tracksTasks}
	if o.Usage.Err == nil && len(o.Usage.Got) > 0 {
		trend := triage.TrendOf(o.Usage.Got, t).AddEarlier(o.recorded.Samples, o.Usage.Got, t)
		sig.Trend = &trend
	}
	if o.Logs.Err == nil {
		if o.logFindings == nil {
			o.readLogs(triage.NewMatcher())
		}
		sig.Logs = o.logFindings
	}
	if o.Processes.Err == nil {
		sig.Processes = new(len(o.Processes.Got))
	}
	sig.Finished, sig.FinishedBy = o.finishedVerdict()
	sig.Waits, sig.TimeLimitsHit = o.waitsVerdict(), o.recorded.TimeLimitsHit
	if o.profileSignals != nil {
		sig.Fleet = o.profileSignals(t.StuckAge)
	}
	if o.Work.Err == nil {
		sig.LastBeatAt, sig.ReportedSilence = o.Work.Got.LastHeartbeatAt, o.Work.Got.Silence
	}
	sig.SourceFailed, sig.LookFailed = o.SourceErr() != nil, o.LookErr() != nil
	if o.Health.Err == nil {
		sig.Answers, sig.Agrees = o.Health.Got.Verdict, recordAgrees(o.Sandbox.State, o.Health.Got.Verdict)
	}
	return sig
}

// Judge returns the verdict on the sandbox by its record and by what was observed.
func (o Observation) Judge(t triage.Thresholds, now time.Time) triage.Verdict {
	return triage.Judge(o.Sandbox, o.Signals(t), t, now)
}

// recordAgrees compares the record with the result of the probe (R95).
func recordAgrees(state sandbox.State, answers sandbox.Verdict) sandbox.Verdict {
	switch {
	case answers != sandbox.True && answers != sandbox.False:
		return sandbox.Unknown
	case state == sandbox.StateRunning:
		return answers
	case state.Ended():
		return sandbox.VerdictOf(answers == sandbox.False)
	}
	return sandbox.Unknown
}

// Figures are what the observation told of the usage, for conditions.
func (o Observation) Figures(t triage.Thresholds) *selector.Figures {
	figures := &selector.Figures{}
	if couldNotBeAsked(o.Usage.Err) {
		figures.Err = o.Usage.Err
	}
	if o.Usage.Err == nil && len(o.Usage.Got) > 0 {
		figures.Trend = triage.TrendOf(o.Usage.Got, t)
		figures.Last = slices.MaxFunc(o.Usage.Got, func(a, b sandbox.Usage) int { return a.At.Compare(b.At) })
	}
	return figures
}
