// Package drill stages a real incident on the local provider and performs the investigation
// of the "sandbox stuck" runbook on it: sandboxes that loop, hang, leak, fall silent or
// have no owner, and a healthy one that must survive. It classifies each by the rules of
// all other verbs, ends the stuck ones, and proves that nothing is left.
//
// The programs are real processes in real limits, and a wrong verdict makes the drill fail.
// Rules about what is stuck do not belong here; they are in triage.
package drill

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Options are where and what to stage.
type Options struct {
	Fleet     *fleet.Fleet // it has only the local profile
	Profile   string
	Binary    string // this program, which also plays the staged programs
	Scenarios []string
	Keep      bool // keep everything as it is after the investigation
	By        string
	Now       func() time.Time
	Say       func(text string) // progress, one line at a time
}

// Report is the result of a drill.
type Report struct {
	Run         string
	Enforcement sandbox.Enforcement
	Compressed  float64 // how many times faster than the runbook's limits
	Cases       []Case
	Steps       []Step
	LeftBehind  []sandbox.Ref // what still exists and should not
	Kept        bool          // the staged sandboxes were kept, as asked
}

// compression is the factor by which every time limit of the runbook is shortened in a
// drill: ten minutes become five seconds.
const compression = 120

// cleanUpTimeout bounds the clean-up after an interruption.
const cleanUpTimeout = 20 * time.Second

// Run stages the incident, investigates, ends what is stuck and cleans up. The error beside
// a report names what failed; wrong verdicts and leftovers are fault.KindFound.
func Run(ctx context.Context, o Options) (report Report, err error) {
	chosen, err := chooseScenes(o.Scenarios)
	if err != nil {
		return Report{}, err
	}
	d := &drillRun{
		Options: o, thresholds: triage.DefaultThresholds().Scaled(1.0 / compression), matcher: triage.NewMatcher(),
		report: Report{Run: newRun(o.Now()), Compressed: compression, Kept: o.Keep},
	}
	defer func() {
		if !o.Keep || ctx.Err() != nil || err != nil {
			d.report.Kept = false
			err = errors.Join(err, d.cleanUp(ctx))
		}
		report = d.fillReport()
		if err == nil {
			err = d.drillError()
		}
	}()
	if err := d.stageScenes(ctx, chosen); err != nil {
		return d.report, err
	}
	if err := d.investigate(ctx); err != nil {
		return d.report, err
	}
	if o.Keep {
		return d.report, nil
	}
	return d.report, d.endCases(ctx)
}

// drillRun is one run of a drill.
type drillRun struct {
	Options
	thresholds triage.Thresholds
	matcher    *triage.Matcher
	staged     []*stagedCase
	report     Report
}

// stagedCase is one case that is being played.
type stagedCase struct {
	scene   scene
	ref     sandbox.Ref
	last    sandbox.Sandbox // the last read
	signals triage.Signals
	result  Case
}

func newRun(at time.Time) string { return at.UTC().Format("20060102t150405.000") }

// stageScenes starts every sandbox concurrently.
func (d *drillRun) stageScenes(ctx context.Context, chosen []scene) error {
	d.Say("staging an incident: " + pluralForm(len(chosen), "sandbox", "sandboxes"))
	type made struct {
		at  int
		s   sandbox.Sandbox
		err error
	}
	results := make(chan made)
	for i, sc := range chosen {
		go func() {
			s, err := d.Fleet.Create(ctx, d.Profile, sc.sandboxSpec(d.report.Run, d.Binary))
			results <- made{i, s, err}
		}()
	}
	byScene := make([]*stagedCase, len(chosen))
	var failed []error
	for range chosen {
		m := <-results
		if m.err != nil {
			failed = append(failed, m.err)
			continue
		}
		sc := chosen[m.at]
		d.report.Enforcement = m.s.Limits.Enforcement
		byScene[m.at] = &stagedCase{
			scene: sc, ref: m.s.Ref(), last: m.s,
			result: Case{Name: sc.name, About: sc.about, Ref: m.s.Ref(), Outcome: sandbox.OutcomeNotAttempted},
		}
	}
	for _, s := range byScene {
		if s != nil {
			d.staged = append(d.staged, s)
		}
	}
	return errors.Join(failed...)
}

// fillReport copies the results of the cases into the report.
func (d *drillRun) fillReport() Report {
	d.report.Cases = nil
	for _, s := range d.staged {
		d.report.Cases = append(d.report.Cases, s.result)
	}
	return d.report
}

func (d *drillRun) drillError() error {
	wrong := 0
	for _, c := range d.report.Cases {
		if !c.OK {
			wrong++
		}
	}
	switch {
	case wrong > 0:
		return fault.New(fault.KindFound, "%d of %d cases are not as they should be", wrong, len(d.report.Cases))
	case len(d.report.LeftBehind) > 0 && !d.Keep:
		return fault.New(fault.KindFound, "%s left behind", pluralForm(len(d.report.LeftBehind), "sandbox", "sandboxes")).
			WithHint("`sbx drill --clean` removes what drills left")
	}
	return nil
}
