package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/poll"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// waitForAge waits until the youngest is past the stuck age and past the time for which a
// busy processor is activity despite silence, and for those that end by themselves.
func (d *drillRun) waitForAge(ctx context.Context) error {
	youngest := time.Time{}
	for _, s := range d.staged {
		if s.last.CreatedAt.After(youngest) && !s.scene.ends {
			youngest = s.last.CreatedAt
		}
	}
	d.Say("waiting until the sandboxes are old enough to be stuck")
	if err := poll.Sleep(ctx, youngest.Add(d.thresholds.StuckAge+d.thresholds.Inactivity).Sub(d.env.Now())); err != nil {
		return err
	}
	for _, s := range d.staged {
		if s.scene.memory > 0 {
			if err := d.waitForEnd(ctx, s.ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// doomedWithin is the time in which a program must reach its limit, or its end, on a slow machine.
const doomedWithin = time.Minute

// waitForEnd waits for a program that ends by itself or runs into its limit. Where it does not, its
// verdict shows it.
func (d *drillRun) waitForEnd(ctx context.Context, ref sandbox.Ref) error {
	limit, stop := context.WithTimeout(ctx, doomedWithin)
	defer stop()
	_, _ = d.fleet.Wait(limit, ref, fleet.GoalEnded)
	return ctx.Err()
}

// tries is how often a case is looked at where a busy machine made the figures useless.
const tries = 3

// judgeCases judges each case by what can be known of it, before anything is done.
func (d *drillRun) judgeCases(ctx context.Context) error {
	d.Say("judging each case")
	done := make(chan error)
	for _, s := range d.staged {
		go func() { done <- d.judgeCase(ctx, s) }()
	}
	var errs []error
	for range d.staged {
		errs = append(errs, <-done)
	}
	if ctx.Err() != nil { // it explains more than the errors of reads
		return ctx.Err()
	}
	return errors.Join(errs...)
}

func (d *drillRun) judgeCase(ctx context.Context, s *stagedCase) error {
	var r *look.InspectResult
	for range tries {
		found, err := look.Diagnose(ctx, d.env, look.DiagnoseRequest{Word: s.ref.String(), Sandbox: true}, d.newWatcher())
		if err != nil {
			return err
		}
		r = found.Inspected
		if s.last = r.Seen.Sandbox; !d.isUnexplained(r) {
			break
		}
	}
	c := &s.result
	c.Expected = s.scene.expected(d.report.Enforcement)
	c.Cause, c.Confidence, c.Evidence = nameVerdict(r.Verdict)
	exit := s.last.Exit
	switch {
	case c.Cause != c.Expected:
		c.Why = fmt.Sprintf("expected %q, the rules give %q", c.Expected, c.Cause)
	case s.scene.ends && (exit == nil || exit.Code == nil || *exit.Code != s.scene.exit):
		c.Why = fmt.Sprintf("it did not end with exit code %d", s.scene.exit)
	}
	c.OK = c.Why == ""
	return nil
}

// isUnexplained reports whether a sandbox is silent and its figures explain nothing.
func (d *drillRun) isUnexplained(r *look.InspectResult) bool {
	quiet := r.Signals.Logs != nil && r.At.Sub(r.Signals.Logs.Last) > d.thresholds.BusySilence
	return !r.Seen.Sandbox.State.Ended() && quiet && (r.Verdict.Pattern == triage.PatternSteady || r.Verdict.Pattern == triage.PatternUnknown)
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

// notStaged are the checks of a verification about what no drill stages.
func notStaged() map[string]string {
	return map[string]string{
		"verify.cleanup_recent": "a drill has no job that cleans up",
		"verify.timeouts_low":   "a drill launches no tasks",
	}
}

// runBook runs the runbook over the staged sandboxes. Its gates are answered as by --yes: it sees nothing
// else that could end. With Keep it is a dry run, which changes nothing and is not on record.
func (d *drillRun) runBook(ctx context.Context) error {
	d.Say("running the runbook " + d.staging.runbook)
	req := engine.Request{
		Book: d.Book, Yes: !d.Keep, MaxDelete: len(d.staged), DryRun: d.Keep, Staged: true, Omit: notStaged(),
		Line: []string{d.env.Process.Name(), "drill"},
	}
	for _, s := range d.staged {
		if s.scene.name == d.staging.about {
			req.Word = s.ref.String()
		}
	}
	run, err := engine.Start(ctx, d.env, req, d.newWatcher())
	if err != nil {
		return err
	}
	d.report.Runbook = run
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if run.State != engine.RunDone && run.State != engine.RunFailed { // a gate without an answer, or a record that cannot be written
		return fmt.Errorf("the runbook %s: %w", run.Runbook, run.Err())
	}
	return nil
}

// endedByRunbook are the outcomes of what the runbook has ended, by reference.
func (d *drillRun) endedByRunbook() map[string]engine.Outcome {
	done := map[string]engine.Outcome{}
	if d.report.Runbook == nil {
		return done
	}
	for _, s := range d.report.Runbook.Acts() {
		for _, o := range s.Act.Outcomes {
			done[o.Ref] = o
		}
	}
	return done
}

// failedStep is the first act, or read, of a run that failed; "" = none has. What the verification of a
// runbook misses is said in its run: it is about the machine as well.
func failedStep(run *engine.Run) string {
	i := slices.IndexFunc(run.Steps, func(s engine.Step) bool {
		return s.State == engine.Failed && (s.Kind == runbook.KindAct || s.Kind == runbook.KindCollect)
	})
	if i < 0 {
		return ""
	}
	return run.Steps[i].Title + ": " + run.Steps[i].Reason
}

// watcher is what the operations of a drill report to.
type watcher struct {
	ops.Reporter

	d *drillRun
}

var _ engine.Observer = watcher{}

func (d *drillRun) newWatcher() watcher { return watcher{d.Watch, d} }

// Note drops how a run goes on: a drill is staged again.
func (watcher) Note(string) {}

// Progress is ops.Observer's.
func (watcher) Progress(string) ops.Progress { return noProgress{} } //nolint:ireturn // as ops.Observer wants it

// Item says which step is done.
func (w watcher) Item(item any) {
	if s, ok := item.(engine.Step); ok && s.State == engine.Running {
		w.d.Say(s.Title)
	}
}

// Attended is false: nobody does what only a person can do.
func (watcher) Attended() bool { return false }

// Ask has no answer.
func (watcher) Ask(context.Context, ops.Question) (text string, answered bool, err error) {
	return "", false, nil
}

type noProgress struct{}

func (noProgress) Update(string) {}
func (noProgress) Done()         {}
