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
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Step is one step of the investigation.
type Step struct {
	triage.InvestigationStep

	Took    time.Duration
	Answers []string
}

// stepWork is what each step of the investigation does.
func stepWork() map[string]func(*drillRun, context.Context) ([]string, error) {
	return map[string]func(*drillRun, context.Context) ([]string, error){
		"count": (*drillRun).countStep, "stuck": (*drillRun).stuckStep, "logs": (*drillRun).logStep,
		"resources": (*drillRun).resourceStep, "cleanup": (*drillRun).cleanupStep,
	}
}

func (d *drillRun) investigate(ctx context.Context) error {
	work := stepWork()
	for _, s := range triage.InvestigationSteps() {
		d.Say(s.Title)
		began := d.Now()
		answers, err := work[s.ID](d, ctx)
		d.report.Steps = append(d.report.Steps, Step{InvestigationStep: s, Took: d.Now().Sub(began), Answers: answers})
		if ctx.Err() != nil { // it explains more than the error of the step
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("step %s: %w", s.ID, err)
		}
	}
	return d.judgeCases(ctx)
}

// countStep answers R19 to R22.
func (d *drillRun) countStep(ctx context.Context) ([]string, error) {
	stats := d.Fleet.Stats(ctx)
	if len(stats) != 1 || stats[0].Err != nil || stats[0].ItemsErr != nil {
		return nil, fault.New(fault.KindUnavailable, "the counts cannot be read: %w", firstError(stats))
	}
	active, provisioning := stats[0].Stats.Active, stats[0].Stats.Provisioning
	answers := []string{
		fmt.Sprintf("active now: %s (R19)", formatFigure(active)),
		fmt.Sprintf("in provisioning: %s (R20)", formatFigure(provisioning)),
	}
	var oldest time.Duration
	for _, s := range stats[0].Items {
		if age, source := s.Age(d.Now()); s.State == sandbox.StateRunning && source != sandbox.AgeUnknown {
			oldest = max(oldest, age)
		}
	}
	return append(answers,
		fmt.Sprintf("the oldest has run for %s (R21)", sandbox.FormatElapsed(oldest)),
		"growing or stable: unknown, one count shows no trend (R22)"), nil
}

func firstError(stats []fleet.ProviderStats) error {
	for _, s := range stats {
		if err := errors.Join(s.Err, s.ItemsErr); err != nil {
			return err
		}
	}
	return errors.New("no provider answered")
}

// stuckStep waits until the staged sandboxes are older than the stuck age, then reads them
// again and raises the runbook's flags (R26 to R29).
func (d *drillRun) stuckStep(ctx context.Context) ([]string, error) {
	if err := d.waitForAge(ctx); err != nil {
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
		if ids := raisedFlags(triage.Flags(read, s.signals, d.thresholds, d.Now())); ids != "" {
			answers = append(answers, s.scene.name+": "+ids)
		}
	}
	return answers, nil
}

func raisedFlags(flags []triage.Flag) string {
	var ids []string
	for _, f := range flags {
		if f.Verdict == sandbox.True {
			ids = append(ids, f.Say+" ("+f.ID+")")
		}
	}
	return strings.Join(ids, ", ")
}

// waitForAge waits until the youngest is past the stuck age and past the time for which a
// busy processor is activity despite silence.
func (d *drillRun) waitForAge(ctx context.Context) error {
	youngest := time.Time{}
	for _, s := range d.staged {
		if s.last.CreatedAt.After(youngest) {
			youngest = s.last.CreatedAt
		}
	}
	if err := poll.Sleep(ctx, youngest.Add(d.thresholds.StuckAge+d.thresholds.Inactivity).Sub(d.Now())); err != nil {
		return err
	}
	return d.waitForDoomed(ctx)
}

// doomedWithin is the time in which a program must reach its limit on a slow machine.
const doomedWithin = time.Minute

// waitForDoomed waits for the programs that run into their limit. Where one does not end,
// its verdict shows it.
func (d *drillRun) waitForDoomed(ctx context.Context) error {
	limit, stop := context.WithTimeout(ctx, doomedWithin)
	defer stop()
	for _, s := range d.staged {
		if s.scene.memory > 0 {
			_, _ = d.Fleet.Wait(limit, s.ref, fleet.GoalEnded)
		}
	}
	return ctx.Err()
}

// logStep looks for last activity, errors, repetition and known patterns (R34 to R41).
func (d *drillRun) logStep(ctx context.Context) ([]string, error) {
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
		answers = append(answers, s.scene.name+": "+d.tellProgress(found))
	}
	return answers, nil
}

func (d *drillRun) tellProgress(f triage.LogFindings) string {
	words := []string{pluralForm(f.Lines, "line", "lines")}
	if !f.Last.IsZero() {
		words = append(words, "last "+sandbox.FormatElapsed(d.Now().Sub(f.Last))+" ago")
	}
	if f.Errors > 0 {
		words = append(words, pluralForm(f.Errors, "error", "errors"))
	}
	if f.Calling {
		words = append(words, "ends in a call to "+f.Call)
	}
	for _, h := range f.Hits {
		words = append(words, h.Pattern.Say)
	}
	return strings.Join(words, ", ")
}

// Sampling of resources: long enough for a rate and a slope, and repeated where a busy
// machine made the figures useless.
const (
	samples  = 3
	interval = 500 * time.Millisecond
	tries    = 3
)

// resourceStep samples usage (R43 to R50).
func (d *drillRun) resourceStep(ctx context.Context) ([]string, error) {
	for range tries {
		if err := d.sampleUsage(ctx); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(d.staged, d.isUnexplained) {
			break
		}
	}
	var answers []string
	for _, s := range d.staged {
		said := describeUsage(*s.signals.Trend, d.verdictOf(s).Pattern)
		if s.last.State.Ended() {
			said = "has ended"
		}
		answers = append(answers, s.scene.name+": "+said)
	}
	return answers, nil
}

// sampleUsage reads every sandbox's usage for one trend.
func (d *drillRun) sampleUsage(ctx context.Context) error {
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

// isUnexplained reports whether a sandbox is silent and its figures explain nothing.
func (d *drillRun) isUnexplained(s *stagedCase) bool {
	quiet := s.signals.Logs != nil && d.Now().Sub(s.signals.Logs.Last) > d.thresholds.BusySilence
	pattern := d.verdictOf(s).Pattern
	return !s.last.State.Ended() && quiet && (pattern == triage.PatternSteady || pattern == triage.PatternUnknown)
}

func describeUsage(t triage.Trend, pattern triage.UsagePattern) string {
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

// cleanupStep tells what is on record of scheduled cleanups (R51 to R57). Records that cannot be
// read are the answer, and do not end the drill.
func (d *drillRun) cleanupStep(ctx context.Context) ([]string, error) {
	says, err := "nothing is on record", error(nil)
	if d.Cleanup != nil {
		says, err = d.Cleanup(ctx)
	}
	if err != nil {
		says = "unknown, " + err.Error()
	}
	return []string{"scheduled cleanup: " + says + " (R53)"}, nil
}

// judgeCases judges each case by all observations and a fresh read: a case that was silent
// for a moment may have written output since.
func (d *drillRun) judgeCases(ctx context.Context) error {
	for _, s := range d.staged {
		now, err := d.Fleet.Get(ctx, s.ref)
		if err != nil {
			return err
		}
		s.last = now
		c := &s.result
		c.Expected = s.scene.expected(d.report.Enforcement)
		c.Cause, c.Confidence, c.Evidence = nameVerdict(d.verdictOf(s))
		c.OK = c.Cause == c.Expected
		if !c.OK {
			c.Why = fmt.Sprintf("expected %q, the rules give %q", c.Expected, c.Cause)
		}
	}
	return nil
}

func (d *drillRun) verdictOf(s *stagedCase) triage.Verdict {
	return triage.Judge(s.last, s.signals, d.thresholds, d.Now())
}

// nameVerdict is the cause of a verdict. For a healthy sandbox it adds the missing owner,
// which a verdict only lists as a finding.
func nameVerdict(v triage.Verdict) (sandbox.Cause, sandbox.Confidence, []sandbox.Evidence) {
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
