package drill

import (
	"context"
	"errors"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Stage is what Live gives to its work: the sandboxes, and how to read them.
type Stage struct {
	Env  *ops.Env          // of the staged sandboxes alone, with the limits of a drill
	Omit map[string]string // the checks that a run of the runbook leaves out: engine.Request.Omit
}

// LiveReport says what became of the sandboxes of a live drill.
type LiveReport struct {
	Staged     int
	Ended      int           // how many of them had ended before the rest was removed
	LeftBehind []sandbox.Ref // what still exists and should not
}

// Live stages the incident, calls work once the sandboxes are old enough to be stuck, and removes all of them when work
// returns or ctx ends.
func Live(ctx context.Context, o Options, work func(ctx context.Context, stage Stage) error) (report LiveReport, err error) {
	d, err := newDrill(ctx, o)
	if err != nil {
		return LiveReport{}, err
	}
	d.life = liveLifetime
	defer func() {
		report.Staged, report.Ended = len(d.staged), d.countEnded(ctx)
		err = errors.Join(err, d.cleanUp(ctx))
		if report.LeftBehind = d.report.LeftBehind; err == nil {
			err = leftError(report.LeftBehind)
		}
	}()
	if err := d.stageScenes(ctx); err != nil {
		return report, err
	}
	if err := d.waitForAge(ctx); err != nil {
		return report, err
	}
	return report, work(ctx, Stage{d.env, notStaged()})
}

// countEnded counts what has ended before the clean-up.
func (d *drillRun) countEnded(ctx context.Context) (ended int) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer stop()
	for _, s := range d.fleet.Collect(ctx, providers.Query{All: true}).Items {
		if s.State.Ended() {
			ended++
		}
	}
	return ended
}

// leftError is the error of a drill that has left something; nil = it has not.
func leftError(left []sandbox.Ref) error {
	if len(left) == 0 {
		return nil
	}
	return fault.New(fault.KindFound, "%s left behind", sandbox.FormatCount(len(left), "sandbox", "sandboxes")).
		WithHint("`sbx drill --clean` removes the sandboxes of earlier drills")
}
