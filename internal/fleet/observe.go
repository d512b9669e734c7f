package fleet

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	tailLines   = 200         // read for the rules: four times the 50 that they compare with each other
	longerEvery = time.Second // between the samples of a longer look
	// historyWindow is how far back kept samples are read: triage.Thresholds.BusySilence
	// (5 min) and a step of the widest grid (1 min), so that they span it.
	historyWindow = 6 * time.Minute
)

// Part is one thing that was asked of a provider: the answer, or why there is
// none.
type Part[T any] struct {
	Got T
	Err error
}

// Observation is what was seen of one sandbox beside its record.
type Observation struct {
	Sandbox sandbox.Sandbox // with what the parts add to its record
	Usage   Part[[]sandbox.Usage]
	Health  Part[providers.Health]
	Events  Part[[]sandbox.Event]
	Logs    Part[[]sandbox.LogLine]
	// CapturesOutput says that Logs hold what every program of the sandbox writes.
	CapturesOutput bool
	Processes      Part[[]providers.Process]
	Exit           Part[*sandbox.Exit] // of the program that create started, where the record has none
	Work           Part[providers.Activity]

	past    SandboxHistory                           // what is on record of it
	profile func(time.Duration) *triage.FleetSignals // and of its profile, by the stuck age; nil = nobody asked

	tracksTasks bool                // its provider would name a task or an agent if there were one
	found       *triage.LogFindings // what the rules find in Logs; nil = nobody has read them yet
}

// Observe asks for everything at once. It changes nothing. What it adds to ObserveLife
// is for people to read; both are judged alike.
func (f *Fleet) Observe(ctx context.Context, s sandbox.Sandbox) Observation {
	o := f.unobserved(s)
	ref := s.Ref()
	var wg sync.WaitGroup
	wg.Go(func() { o.Health.Got, o.Health.Err = f.Probe(ctx, ref) })
	wg.Go(func() { o.Events.Got, o.Events.Err = f.Events(ctx, ref) })
	if s.Exit == nil {
		wg.Go(func() { o.Exit.Got, o.Exit.Err = f.Exit(ctx, ref) })
	}
	f.observeLife(ctx, &o, &wg, nil)
	wg.Wait()
	if o.Exit.Got != nil {
		o.Sandbox.Exit = o.Exit.Got
	}
	o.work()
	o.weighProcesses()
	o.readLogs(f.matcher())
	return o
}

// ObserveLife asks only for what tells whether a sandbox is at work: usage,
// output, and what a control plane heard of it. It changes nothing.
func (f *Fleet) ObserveLife(ctx context.Context, s sandbox.Sandbox) Observation {
	return f.ObserveLifeBeside(ctx, s, nil)
}

// ObserveLifeBeside is ObserveLife for a caller that has taken samples of its own: they
// are used where the provider keeps none that tell more.
func (f *Fleet) ObserveLifeBeside(ctx context.Context, s sandbox.Sandbox, samples []sandbox.Usage) Observation {
	o := f.unobserved(s)
	var wg sync.WaitGroup
	if s.State == sandbox.StateRunning && s.Labels[sandbox.LabelRun] != "" { // create started a program in it, which may have exited
		wg.Go(func() { o.Exit.Got, o.Exit.Err = f.Exit(ctx, s.Ref()) })
	}
	f.observeLife(ctx, &o, &wg, samples)
	wg.Wait()
	o.work()
	o.weighProcesses()
	if o.Processes.Err != nil && s.State == sandbox.StateRunning { // nothing inside has answered yet
		o.Health.Got, o.Health.Err = f.Probe(ctx, s.Ref())
	}
	o.readLogs(f.matcher())
	return o
}

func (f *Fleet) observeLife(ctx context.Context, o *Observation, wg *sync.WaitGroup, samples []sandbox.Usage) {
	s := o.Sandbox
	if _, reader, err := able[providers.LogReader](f, s.Provider, "logs"); err == nil {
		o.CapturesOutput = reader.CapturesOutput(s)
	}
	wg.Go(func() { f.observeHistory(ctx, o) })
	wg.Go(func() { o.Usage = f.sampled(ctx, s, o.CapturesOutput, samples) })
	wg.Go(func() { o.Logs = f.Tail(ctx, s.Ref(), tailLines) })
	if s.State.Ended() {
		return
	}
	wg.Go(func() { o.Work.Got, o.Work.Err = f.Activity(ctx, s) })
	if s.State == sandbox.StateRunning {
		wg.Go(func() { o.Processes.Got, o.Processes.Err = f.Processes(ctx, s.Ref()) })
	}
}

// weighProcesses takes the word of the log back where a program runs whose output is
// not in it, or where that could not be asked.
func (o *Observation) weighProcesses() {
	switch {
	case errors.Is(o.Processes.Err, errNotAsked), fault.KindOf(o.Processes.Err) == fault.KindUnsupported:
	case o.Processes.Err != nil, len(o.Processes.Got) > 0:
		o.CapturesOutput = false
		o.Sandbox.ActivityBasis = sandbox.BasisUnknown
	}
}

// errNotAsked stands for what a look did not need.
var errNotAsked = errors.New("not asked")

func (f *Fleet) unobserved(s sandbox.Sandbox) Observation {
	o := Observation{Sandbox: s}
	o.tracksTasks = f.tracksTasks(s.Provider)
	o.Health.Err, o.Processes.Err = errNotAsked, errNotAsked
	return o
}

// tracksTasks says that a profile would name the task of a sandbox if there were one:
// whoever creates sandboxes keeps what they were created for, and the rows of a control
// plane name it (ACCEPTANCE R29).
func (f *Fleet) tracksTasks(profile string) bool {
	_, _, err := able[providers.Launcher](f, profile, "create")
	return err == nil || f.HasRecords(profile)
}

// readLogs holds the output against the rules, once, since a judgement may ask
// several times and is made twice.
func (o *Observation) readLogs(m *triage.Matcher) {
	found := triage.ReadLines(m, o.Logs.Got)
	found.Complete = o.CapturesOutput
	o.found = &found
}

// work counts what a control plane knows as activity; a heartbeat is no work.
func (o *Observation) work() {
	basis := sandbox.BasisUnknown
	if o.Work.Err == nil && !o.Sandbox.State.Ended() {
		basis = sandbox.BasisReports
	}
	o.Sandbox = o.Sandbox.WithActivity(o.Work.Got.LastWorkAt, basis)
}

// SourceErr is why a source that may have seen the sandbox at work could not be
// asked; nil where all answered, or none knows it.
func (o Observation) SourceErr() error {
	if couldNotBeAsked(o.Work.Err) {
		return o.Work.Err
	}
	return nil
}

// couldNotBeAsked says that a source failed. One that cannot tell, or does not know the
// sandbox, has answered.
func couldNotBeAsked(err error) bool {
	switch fault.KindOf(err) {
	case fault.KindNone, fault.KindUnsupported, fault.KindNotFound, fault.KindGone:
		return false
	default:
		return true
	}
}

// LookErr is why one of the looks at the sandbox itself failed that may have shown work:
// at its figures, its output, its programs, or by a probe. What its provider cannot tell
// is no failure, nor what is said of this one sandbox alone.
func (o Observation) LookErr() error {
	for _, err := range []error{o.Usage.Err, o.Logs.Err, o.Processes.Err, o.Health.Err} {
		if couldNotBeAsked(err) && !errors.Is(err, errNotAsked) && !fault.AboutOneSandbox(err) {
			return err
		}
	}
	return nil
}

// FailedErr is why something that may have seen the sandbox at work could not be asked: a
// control plane, or the sandbox itself.
func (o Observation) FailedErr() error { return cmp.Or(o.SourceErr(), o.LookErr()) }

// FailedLooks sums up why sandboxes could not be judged: one error a profile and kind.
func FailedLooks(unjudged []Observation) []error {
	type failure struct {
		profile string
		kind    fault.Kind
	}
	count, first := map[failure]int{}, map[failure]error{}
	var order []failure
	for _, o := range unjudged {
		err := o.FailedErr()
		if err == nil {
			continue
		}
		at := failure{o.Sandbox.Provider, fault.KindOf(err)}
		if count[at]++; count[at] == 1 {
			order, first[at] = append(order, at), err
		}
	}
	errs := make([]error, 0, len(order))
	for _, at := range order {
		errs = append(errs, fault.New(at.kind, "%s, since a source that may have seen work does not answer: %w", notJudged(count[at]), first[at]).
			At(at.profile, "activity").WithHint("`sbx doctor` checks the source; `sbx cleanup --ignore-activity` judges by age alone"))
	}
	return errs
}

func notJudged(n int) string {
	if n == 1 {
		return "1 sandbox is not judged"
	}
	return strconv.Itoa(n) + " sandboxes are not judged"
}

// sampled takes two samples of what runs, so that rates are known, and one of what
// does not. Where memory may be filling up, it goes on until the samples span enough
// to tell.
//
// Where the log does not capture output, figures are the only witness of work: then
// the samples that the provider keeps are read instead.
func (f *Fleet) sampled(ctx context.Context, s sandbox.Sandbox, captured bool, samples []sandbox.Usage) Part[[]sandbox.Usage] {
	if !captured && s.State == sandbox.StateRunning {
		if kept, err := f.UsageHistory(ctx, s.Ref(), f.o.Now().Add(-historyWindow)); err == nil && len(kept) > 1 {
			return Part[[]sandbox.Usage]{Got: kept}
		}
	}
	if len(samples) > 0 {
		return Part[[]sandbox.Usage]{Got: f.longer(ctx, s.Ref(), samples)}
	}
	n := 1
	if s.State == sandbox.StateRunning {
		n = 2
	}
	var p Part[[]sandbox.Usage]
	for round := range f.Samples(ctx, []sandbox.Ref{s.Ref()}, n, f.o.Sample) {
		if p.Err = round.Samples[0].Err; p.Err != nil {
			return p
		}
		p.Got = append(p.Got, round.Samples[0].Usage)
	}
	if len(p.Got) < n {
		p.Err = context.Cause(ctx)
		return p
	}
	p.Got = f.longer(ctx, s.Ref(), p.Got)
	return p
}

// longer adds samples while memory may be filling up and they span too little time to
// tell. What cannot be read any more leaves it at that.
func (f *Fleet) longer(ctx context.Context, ref sandbox.Ref, got []sandbox.Usage) []sandbox.Usage {
	for triage.NeedsLongerLook(got) && wait(ctx, longerEvery) {
		usage, err := f.Usage(ctx, ref)
		if err != nil || !usage.At.After(got[len(got)-1].At) { // a source that gives one sample again would be asked for ever
			return got
		}
		got = append(got, usage)
	}
	return got
}

// Tail reads the last n lines of a sandbox's output, and holds no more than twice
// as many, whatever the provider makes of the wish. It takes a slot, since many may be
// read at once.
func (f *Fleet) Tail(ctx context.Context, ref sandbox.Ref, n int) Part[[]sandbox.LogLine] {
	var p Part[[]sandbox.LogLine]
	m, _, err := able[providers.LogReader](f, ref.Provider, "logs")
	if err != nil {
		p.Err = err
		return p
	}
	leave, err := m.slot(ctx, "logs "+ref.ID)
	if err != nil {
		p.Err = err
		return p
	}
	defer leave()
	for line, err := range f.Logs(ctx, ref, providers.LogQuery{Tail: n}) {
		if err != nil {
			p.Err = err
			break
		}
		if len(p.Got) == 2*n {
			p.Got = append(p.Got[:0], p.Got[n:]...)
		}
		p.Got = append(p.Got, line)
	}
	p.Got = p.Got[max(0, len(p.Got)-n):]
	return p
}

// Signals are what the rules may use: nothing of a part that failed, so that
// what is not known stays unknown.
func (o Observation) Signals(t triage.Thresholds) triage.Signals {
	sig := triage.Signals{Looked: true, Exists: sandbox.True, TracksTasks: o.tracksTasks}
	if o.Usage.Err == nil && len(o.Usage.Got) > 0 {
		trend := triage.TrendOf(o.Usage.Got, t)
		sig.Trend = &trend
	}
	if o.Logs.Err == nil {
		if o.found == nil {
			o.readLogs(triage.NewMatcher())
		}
		sig.Logs = o.found
	}
	if o.Processes.Err == nil {
		sig.Processes = new(len(o.Processes.Got))
	}
	sig.Finished, sig.FinishedBy = o.finished()
	sig.Waits, sig.TimeLimitsHit = o.waits(), o.past.TimeLimitsHit
	if o.profile != nil {
		sig.Fleet = o.profile(t.StuckAge)
	}
	sig.SourceFailed, sig.LookFailed = o.SourceErr() != nil, o.LookErr() != nil
	if o.Health.Err == nil {
		sig.Answers, sig.Agrees = o.Health.Got.Verdict, agrees(o.Sandbox.State, o.Health.Got.Verdict)
	}
	return sig
}

// Judge is the one judgement of the sandbox, by its record and by what was seen.
func (o Observation) Judge(t triage.Thresholds, now time.Time) triage.Verdict {
	return triage.Judge(o.Sandbox, o.Signals(t), t, now)
}

// agrees compares the record with what the probe found (ACCEPTANCE R95).
func agrees(state sandbox.State, answers sandbox.Verdict) sandbox.Verdict {
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
