package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Step is one of the runbook's five investigation steps (ACCEPTANCE R15, R23,
// R31, R42, R51).
type Step struct {
	ID      string
	Title   string
	ETA     time.Duration // what the runbook allows a human
	Took    time.Duration
	Answers []string
}

type step struct {
	id    string
	title string
	eta   time.Duration
	do    func(*drill, context.Context) ([]string, error)
}

// steps are the runbook's, with its ETAs: 15 minutes in all (R58).
func steps() []step {
	return []step{
		{"count", "Check active sandbox count", 2 * time.Minute, (*drill).count},
		{"stuck", "Identify stuck sandboxes", 3 * time.Minute, (*drill).stuck},
		{"logs", "Examine sandbox logs", 5 * time.Minute, (*drill).logs},
		{"resources", "Check resource usage", 3 * time.Minute, (*drill).resources},
		{"cleanup", "Review cleanup job status", 2 * time.Minute, (*drill).cleanup},
	}
}

func (d *drill) investigate(ctx context.Context) error {
	for _, s := range steps() {
		d.Say(s.title)
		began := d.Now()
		answers, err := s.do(d, ctx)
		d.report.Steps = append(d.report.Steps, Step{ID: s.id, Title: s.title, ETA: s.eta, Took: d.Now().Sub(began), Answers: answers})
		if ctx.Err() != nil { // says more than what the step makes of it
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("step %s: %w", s.id, err)
		}
	}
	return d.judge(ctx)
}

// count answers R19 to R22.
func (d *drill) count(ctx context.Context) ([]string, error) {
	stats := d.Fleet.Stats(ctx)
	if len(stats) != 1 || stats[0].Err != nil || stats[0].ItemsErr != nil {
		return nil, fault.New(fault.KindUnavailable, "the counts cannot be read: %w", firstError(stats))
	}
	active, provisioning := stats[0].Stats.Active, stats[0].Stats.Provisioning
	answers := []string{
		fmt.Sprintf("active now: %s (R19)", figure(active)),
		fmt.Sprintf("in provisioning: %s (R20)", figure(provisioning)),
	}
	var oldest time.Duration
	for _, s := range stats[0].Items {
		if age, source := s.Age(d.Now()); s.State == sandbox.StateRunning && source != sandbox.AgeUnknown {
			oldest = max(oldest, age)
		}
	}
	return append(answers,
		fmt.Sprintf("the oldest runs for %s (R21)", sandbox.FormatElapsed(oldest)),
		"growing or stable: unknown, one count says nothing about a trend (R22)"), nil
}

func firstError(stats []fleet.ProviderStats) error {
	for _, s := range stats {
		if err := errors.Join(s.Err, s.ItemsErr); err != nil {
			return err
		}
	}
	return errors.New("no provider answered")
}

// stuck waits until the staged sandboxes are older than the stuck age, then
// reads them again and raises the runbook's flags (R26 to R29).
func (d *drill) stuck(ctx context.Context) ([]string, error) {
	if err := d.ageEnough(ctx); err != nil {
		return nil, err
	}
	var answers []string
	for _, s := range d.staged {
		read, err := d.Fleet.Get(ctx, s.ref)
		if err != nil {
			return answers, err
		}
		s.last = read
		s.signals.TracksTasks = true
		if ids := raised(triage.Flags(read, s.signals, d.thresholds, d.Now())); ids != "" {
			answers = append(answers, s.scene.name+": "+ids)
		}
	}
	return answers, nil
}

func raised(flags []triage.Flag) string {
	var ids []string
	for _, f := range flags {
		if f.Verdict == sandbox.True {
			ids = append(ids, f.Say+" ("+f.ID+")")
		}
	}
	return strings.Join(ids, ", ")
}

// ageEnough waits until the youngest is past the stuck age and past the time
// that a busy processor may excuse silence.
func (d *drill) ageEnough(ctx context.Context) error {
	youngest := time.Time{}
	for _, s := range d.staged {
		if s.last.CreatedAt.After(youngest) {
			youngest = s.last.CreatedAt
		}
	}
	wait := youngest.Add(d.thresholds.StuckAge + d.thresholds.Inactivity).Sub(d.Now())
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return d.doomedEnded(ctx)
	}
}

// doomedWithin is how long a slow machine may need to run into a limit.
const doomedWithin = time.Minute

// doomedEnded waits for those that run into their limit. Should one not end, the
// verdict over it says so.
func (d *drill) doomedEnded(ctx context.Context) error {
	limit, stop := context.WithTimeout(ctx, doomedWithin)
	defer stop()
	for _, s := range d.staged {
		if s.scene.memory > 0 {
			_, _ = d.Fleet.Wait(limit, s.ref, fleet.GoalEnded)
		}
	}
	return ctx.Err()
}

// logs looks for last activity, errors, repetition and known patterns (R34 to
// R41).
func (d *drill) logs(ctx context.Context) ([]string, error) {
	var answers []string
	for _, s := range d.staged {
		watch := triage.NewLogWatch(d.matcher)
		for line, err := range d.Fleet.Logs(ctx, s.ref, providers.LogQuery{Tail: 200}) {
			if err != nil {
				return answers, err
			}
			watch.Add(line)
		}
		found := watch.Findings()
		s.signals.Logs = &found
		answers = append(answers, s.scene.name+": "+d.tell(found))
	}
	return answers, nil
}

func (d *drill) tell(f triage.LogFindings) string {
	words := []string{plural(f.Lines, "line", "lines")}
	if !f.Last.IsZero() {
		words = append(words, "last "+sandbox.FormatElapsed(d.Now().Sub(f.Last))+" ago")
	}
	if f.Errors > 0 {
		words = append(words, plural(f.Errors, "error", "errors"))
	}
	if f.Calling {
		words = append(words, "ends in a call to "+f.Call)
	}
	for _, h := range f.Hits {
		words = append(words, h.Pattern.Say)
	}
	return strings.Join(words, ", ")
}

// How resources are sampled: enough for a rate and a slope, no longer, and again
// where a crowded machine made the figures say nothing.
const (
	samples  = 3
	interval = 500 * time.Millisecond
	tries    = 3
)

// resources reads use over a while (R43 to R50).
func (d *drill) resources(ctx context.Context) ([]string, error) {
	for range tries {
		if err := d.sample(ctx); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(d.staged, d.puzzling) {
			break
		}
	}
	var answers []string
	for _, s := range d.staged {
		said := describe(*s.signals.Trend, d.judged(s).Pattern)
		if s.last.State.Ended() {
			said = "has ended"
		}
		answers = append(answers, s.scene.name+": "+said)
	}
	return answers, nil
}

// sample reads every sandbox's use for one trend.
func (d *drill) sample(ctx context.Context) error {
	var refs []sandbox.Ref
	for _, s := range d.staged {
		refs = append(refs, s.ref)
	}
	series := make([][]sandbox.Usage, len(refs))
	for round := range d.Fleet.Samples(ctx, refs, samples, interval) {
		for i, sample := range round.Samples {
			if sample.Err != nil {
				return sample.Err
			}
			series[i] = append(series[i], sample.Usage)
		}
	}
	for i, s := range d.staged {
		trend := triage.TrendOf(series[i], d.thresholds)
		s.signals.Trend = &trend
	}
	return ctx.Err()
}

// puzzling says that a sandbox is silent and its figures explain nothing.
func (d *drill) puzzling(s *staged) bool {
	quiet := s.signals.Logs != nil && d.Now().Sub(s.signals.Logs.Last) > d.thresholds.BusySilence
	pattern := d.judged(s).Pattern
	return !s.last.State.Ended() && quiet && (pattern == triage.PatternSteady || pattern == triage.PatternUnknown)
}

func describe(t triage.Trend, pattern triage.UsagePattern) string {
	var words []string
	if t.CPUPercent != nil {
		words = append(words, fmt.Sprintf("cpu %.0f %%", *t.CPUPercent))
	}
	if t.MemoryBytes != nil {
		words = append(words, fmt.Sprintf("memory %d MiB", *t.MemoryBytes/sandbox.MiB))
	}
	if t.OperationsRate != nil {
		words = append(words, fmt.Sprintf("%.0f operations/s", *t.OperationsRate))
	}
	if t.Waiting != "" {
		words = append(words, "waits on "+t.Waiting)
	}
	return strings.Join(append(words, "pattern "+string(pattern)), ", ")
}

// cleanup answers what can be answered without a journal of cleanups: sbx
// tidies up after dead supervisors at every verb, and knows of no scheduled
// job (R51 to R57).
func (d *drill) cleanup(context.Context) ([]string, error) {
	return []string{"when a scheduled cleanup last ran: unknown, nothing here keeps a record of it (R53)"}, nil
}

// judge names each case by what was seen of it, and by how it stands now: the
// steps took their time, and what was quiet for a moment may have spoken since.
func (d *drill) judge(ctx context.Context) error {
	for _, s := range d.staged {
		now, err := d.Fleet.Get(ctx, s.ref)
		if err != nil {
			return err
		}
		s.last = now
		c := &s.result
		c.Expected = s.scene.expected(d.report.Enforcement)
		c.Cause, c.Confidence, c.Evidence = name(d.judged(s))
		c.OK = c.Cause == c.Expected
		if !c.OK {
			c.Why = fmt.Sprintf("expected %q, the rules say %q", c.Expected, c.Cause)
		}
	}
	return nil
}

// judged is the judgement of one case by what was seen of it so far.
func (d *drill) judged(s *staged) triage.Verdict {
	return triage.Judge(s.last, s.signals, d.thresholds, d.Now())
}

// name is the cause of a verdict. Of what is in order it still says that nobody owns
// it, which a verdict leaves to its findings.
func name(v triage.Verdict) (sandbox.Cause, sandbox.Confidence, []sandbox.Evidence) {
	i := slices.IndexFunc(v.Findings, func(f triage.Finding) bool {
		return f.Cause == v.Cause || v.Cause == sandbox.CauseNone && f.Cause == sandbox.CauseOrphan
	})
	switch {
	case i >= 0:
		return v.Findings[i].Cause, v.Findings[i].Confidence, v.Findings[i].Evidence
	case v.Cause == sandbox.CauseNone:
		return sandbox.CauseNone, sandbox.Probable, v.Evidence
	}
	return v.Cause, v.Confidence, v.Evidence
}
