// Package drill stages a real incident on the local provider and runs the shipped runbook for it:
// sandboxes that loop, hang, leak, fall silent or have no owner, and a healthy one that must
// survive. Each is judged by the rules of all other verbs; the runbook ends what is stuck, the drill
// the rest, and it proves that nothing is left.
//
// The programs are real processes in real limits, and a wrong verdict makes the drill fail.
// Rules about what is stuck do not belong here; they are in triage. Steps are in runbook/engine.
package drill

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Options are where and what to stage.
type Options struct {
	Env       *ops.Env
	Book      *runbook.Runbook // that is run; its id decides what is staged
	Binary    string           // this program, which also plays the staged programs
	Scenarios []string
	Keep      bool // keep everything as it is after the investigation
	By        string
	Watch     ops.Reporter
	Say       func(text string) // progress, one line at a time
}

// Report is the result of a drill.
type Report struct {
	Run         string
	Enforcement sandbox.Enforcement
	Compressed  float64 // how many times faster than the runbook's limits
	Cases       []Case
	Runbook     *engine.Run   // nil = it was not begun
	LeftBehind  []sandbox.Ref // what still exists and should not
	Kept        bool          // the staged sandboxes were kept, as asked
}

// cleanUpTimeout bounds the clean-up after an interruption.
const cleanUpTimeout = 20 * time.Second

// Run stages the incident, runs the runbook, ends what it leaves and cleans up. The error beside
// a report names what failed; wrong verdicts and leftovers are fault.KindFound.
func Run(ctx context.Context, o Options) (report Report, err error) {
	d, err := newDrill(ctx, o)
	if err != nil {
		return Report{}, err
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
	if err := d.stageScenes(ctx); err != nil {
		return d.report, err
	}
	if err := d.waitForAge(ctx); err != nil {
		return d.report, err
	}
	if err := d.judgeCases(ctx); err != nil {
		return d.report, err
	}
	if err := d.runBook(ctx); err != nil || o.Keep {
		return d.report, err
	}
	return d.report, d.endCases(ctx)
}

func newDrill(ctx context.Context, o Options) (*drillRun, error) {
	st, err := findStaging(string(o.Book.Metadata.ID))
	if err == nil {
		st, err = st.choose(o.Scenarios)
	}
	if err != nil {
		return nil, err
	}
	f, profile, err := o.Env.HostFleet(ctx)
	if err != nil {
		return nil, err
	}
	life := maxLifetime
	if o.Keep {
		life = keptLifetime
	}
	d := &drillRun{
		Options: o, life: life, staging: st, profile: profile, thresholds: stagedThresholds(),
		report: Report{Run: o.Env.Now().UTC().Format("20060102t150405.000"), Compressed: compression, Kept: o.Keep},
	}
	d.env, d.fleet, err = d.stagedEnv(f)
	return d, err
}

// drillRun is one run of a drill.
type drillRun struct {
	Options

	staging    staging
	profile    string
	life       time.Duration // of what is staged
	env        *ops.Env      // of the staged sandboxes alone
	fleet      *fleet.Fleet  // of these
	thresholds triage.Thresholds
	staged     []*stagedCase
	report     Report
}

// stagedCase is one case that is being played.
type stagedCase struct {
	scene  scene
	ref    sandbox.Ref
	last   sandbox.Sandbox // the last read
	result Case
}

// stageScenes starts every sandbox: concurrently, or one when the one before has ended.
func (d *drillRun) stageScenes(ctx context.Context) error {
	d.Say("staging an incident: " + sandbox.FormatCount(len(d.staging.scenes), "sandbox", "sandboxes"))
	if d.staging.inOrder {
		return d.stageInOrder(ctx)
	}
	type made struct {
		at  int
		s   sandbox.Sandbox
		err error
	}
	results := make(chan made)
	create := func(i int) {
		s, err := d.fleet.Create(ctx, d.profile, d.staging.scenes[i].sandboxSpec(d.report.Run, d.Binary, d.life, d.Keep))
		results <- made{i, s, err}
	}
	byScene := make([]*stagedCase, len(d.staging.scenes))
	var failed []error
	for i := range d.staging.scenes {
		go create(i)
	}
	for range d.staging.scenes {
		m := <-results
		if m.err != nil {
			failed = append(failed, m.err)
			continue
		}
		d.report.Enforcement = m.s.Limits.Enforcement
		byScene[m.at] = newCase(d.staging.scenes[m.at], m.s)
	}
	for _, s := range byScene {
		if s != nil {
			d.staged = append(d.staged, s)
		}
	}
	return errors.Join(failed...)
}

// stageInOrder starts one when the one before has ended.
func (d *drillRun) stageInOrder(ctx context.Context) error {
	for _, sc := range d.staging.scenes {
		s, err := d.fleet.Create(ctx, d.profile, sc.sandboxSpec(d.report.Run, d.Binary, d.life, d.Keep))
		if err != nil {
			return err
		}
		d.report.Enforcement = s.Limits.Enforcement
		d.staged = append(d.staged, newCase(sc, s))
		if err := d.waitForEnd(ctx, s.Ref()); err != nil {
			return err
		}
	}
	return nil
}

func newCase(sc scene, s sandbox.Sandbox) *stagedCase {
	return &stagedCase{
		scene: sc, ref: s.Ref(), last: s,
		result: Case{Name: sc.name, About: sc.about, Ref: s.Ref(), Fact: sc.fact, Healthy: sc.healthy, Outcome: sandbox.OutcomeNotAttempted},
	}
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
	switch run := d.report.Runbook; {
	case wrong > 0:
		return fault.New(fault.KindFound, "%d of %d cases have a wrong result", wrong, len(d.report.Cases))
	case len(d.report.LeftBehind) > 0 && !d.Keep:
		return leftError(d.report.LeftBehind)
	case run != nil && failedStep(run) != "":
		return fault.New(fault.KindFound, "the runbook %s: %s", run.Runbook, failedStep(run)).WithHint(
			"`%s runbook status %s` shows its run", d.env.Process.Name(), run.ID,
		)
	}
	return nil
}

// Case is one staged sandbox and its result.
type Case struct {
	Name       string
	About      string // what is staged, for people
	Ref        sandbox.Ref
	Cause      sandbox.Cause // the cause by triage
	Expected   sandbox.Cause
	Confidence sandbox.Confidence
	Evidence   []sandbox.Evidence
	Fact       string          // the name of the evidence that shows best what was staged; "" = none does
	Healthy    bool            // it must survive
	Outcome    sandbox.Outcome // of its ending; for the healthy one, of the clean-up
	OK         bool
	Why        string // the difference from the expected result
}
