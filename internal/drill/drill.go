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

// Options say where and what to stage.
type Options struct {
	Fleet     *fleet.Fleet // holds the local profile alone
	Profile   string
	Binary    string // this program, which plays the sandboxes
	Scenarios []string
	Keep      bool // leave everything as it stands after the investigation
	By        string
	Now       func() time.Time
	Say       func(text string) // progress, one line at a time
}

// Report is what a drill found and did.
type Report struct {
	Run         string
	Enforcement sandbox.Enforcement
	Compressed  float64 // how many times faster than the runbook's limits
	Cases       []Case
	Steps       []Step
	LeftBehind  []sandbox.Ref // what is still there and should not be
	Kept        bool          // it stands as it was staged, as was asked
}

// compression is how many times shorter every time limit of the runbook is in
// a drill: ten minutes of being stuck take five seconds.
const compression = 120

// aftermath bounds the clean-up after an interruption.
const aftermath = 20 * time.Second

// Run stages the incident, investigates, ends what is stuck and cleans up. An
// error beside a report says what went wrong; wrong verdicts and leftovers are
// fault.KindFound.
func Run(ctx context.Context, o Options) (report Report, err error) {
	chosen, err := choose(o.Scenarios)
	if err != nil {
		return Report{}, err
	}
	d := &drill{
		Options: o, thresholds: triage.DefaultThresholds().Scaled(1.0 / compression), matcher: triage.NewMatcher(),
		report: Report{Run: newRun(o.Now()), Compressed: compression, Kept: o.Keep},
	}
	defer func() {
		if !o.Keep || ctx.Err() != nil || err != nil {
			d.report.Kept = false
			err = errors.Join(err, d.cleanUp(ctx))
		}
		report = d.finished()
		if err == nil {
			err = d.verdict()
		}
	}()
	if err := d.stage(ctx, chosen); err != nil {
		return d.report, err
	}
	if err := d.investigate(ctx); err != nil {
		return d.report, err
	}
	if o.Keep {
		return d.report, nil
	}
	return d.report, d.end(ctx)
}

// drill is one run on its way.
type drill struct {
	Options
	thresholds triage.Thresholds
	matcher    *triage.Matcher
	staged     []*staged
	report     Report
}

// staged is one case in the making.
type staged struct {
	scene   scene
	ref     sandbox.Ref
	last    sandbox.Sandbox // as it was last read
	signals triage.Signals
	result  Case
}

func newRun(at time.Time) string { return at.UTC().Format("20060102t150405.000") }

// stage starts every sandbox at once.
func (d *drill) stage(ctx context.Context, chosen []scene) error {
	d.Say("staging an incident: " + plural(len(chosen), "sandbox", "sandboxes"))
	type made struct {
		at  int
		s   sandbox.Sandbox
		err error
	}
	results := make(chan made)
	for i, sc := range chosen {
		go func() {
			s, err := d.Fleet.Create(ctx, d.Profile, sc.spec(d.report.Run, d.Binary))
			results <- made{i, s, err}
		}()
	}
	byScene := make([]*staged, len(chosen))
	var failed []error
	for range chosen {
		m := <-results
		if m.err != nil {
			failed = append(failed, m.err)
			continue
		}
		sc := chosen[m.at]
		d.report.Enforcement = m.s.Limits.Enforcement
		byScene[m.at] = &staged{
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

// finished copies what is known of each case into the report.
func (d *drill) finished() Report {
	d.report.Cases = nil
	for _, s := range d.staged {
		d.report.Cases = append(d.report.Cases, s.result)
	}
	return d.report
}

func (d *drill) verdict() error {
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
		return fault.New(fault.KindFound, "%s left behind", plural(len(d.report.LeftBehind), "sandbox", "sandboxes")).
			WithHint("`sbx drill --clean` removes what drills left")
	}
	return nil
}
