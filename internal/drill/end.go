package drill

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// endCases ends every case that the runbook has left but the healthy one, verifies each, and checks
// that the healthy one still works.
func (d *drillRun) endCases(ctx context.Context) error {
	d.Say("terminating what the runbook has left")
	done := d.endedByRunbook()
	var targets []sandbox.Sandbox
	byRef := map[sandbox.Ref]*stagedCase{}
	for _, s := range d.staged {
		byRef[s.ref] = s
		if o, ended := done[s.ref.String()]; ended {
			d.recordEnding(s, sandbox.Ending{Ref: s.ref, Outcome: o.Outcome, Reason: o.Reason})
		} else if !s.scene.healthy {
			targets = append(targets, s.last)
		}
	}
	for e := range endStaged(ctx, d.fleet, targets, fleet.EndOptions{By: d.By}, d.openEnds("a case of the drill")) {
		d.recordEnding(byRef[e.Ref], e)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range d.staged {
		if s.scene.healthy {
			d.checkSurvivor(ctx, s)
		} else {
			d.addProof(ctx, s)
		}
	}
	return nil
}

// ProofEvidence is the name of the evidence that nothing of a sandbox is left.
const ProofEvidence = "tree"

// addProof adds what the record of an ended case says of its processes, where it was not yet known.
func (d *drillRun) addProof(ctx context.Context, s *stagedCase) {
	isProof := func(e sandbox.Evidence) bool { return e.What == ProofEvidence }
	now, err := d.fleet.Get(ctx, s.ref)
	if err != nil || now.Exit == nil || slices.ContainsFunc(s.result.Evidence, isProof) {
		return
	}
	if i := slices.IndexFunc(now.Exit.Evidence, isProof); i >= 0 {
		s.result.Evidence = append(s.result.Evidence, now.Exit.Evidence[i])
	}
}

func (d *drillRun) recordEnding(s *stagedCase, e sandbox.Ending) {
	s.result.Outcome = e.Outcome
	if e.Outcome != sandbox.OutcomeVerified && e.Outcome != sandbox.OutcomeAlreadyGone {
		s.result.OK = false
		s.result.Why = "its ending: " + string(e.Outcome) + " " + e.Reason
	}
}

// SurvivalEvidence is the name of the evidence that the healthy case still runs.
const SurvivalEvidence = "survived"

func (d *drillRun) checkSurvivor(ctx context.Context, s *stagedCase) {
	now, err := d.fleet.Get(ctx, s.ref)
	if err != nil || now.State != sandbox.StateRunning {
		s.result.OK = false
		s.result.Why = fmt.Sprintf("it did not survive: %s %v", now.State, err)
		return
	}
	s.result.Outcome = sandbox.OutcomeSkipped
	s.result.Evidence = append(s.result.Evidence, sandbox.Evidence{
		What: SurvivalEvidence, Value: string(now.State), Source: "record", At: d.env.Now().UTC(),
	})
}

// leftByDrill is why a sandbox of an earlier or ending drill is removed.
const leftByDrill = "left by a drill"

// openEnds begins the journal of what the drill ends by itself.
func (d *drillRun) openEnds(why string) runs.Opener {
	return d.env.EndsOpener(d.Watch, runs.Origin{Verb: runs.VerbDrill, Reason: why})
}

// LeftByDrill is the origin of what Clean ends.
func LeftByDrill() runs.Origin { return runs.Origin{Verb: runs.VerbDrill, Reason: leftByDrill} }

// cleanUp removes everything of this run, also after an interruption.
func (d *drillRun) cleanUp(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer stop()
	_, left, err := removeStaged(ctx, d.fleet, d.By, d.openEnds(leftByDrill), map[string]string{drillLabel: d.report.Run})
	d.report.LeftBehind = left
	return err
}

// Clean removes everything that any drill left. The report has a case for each that was
// removed; the error names what was not.
func Clean(ctx context.Context, f *fleet.Fleet, by string, open runs.Opener) (Report, error) {
	endings, left, err := removeStaged(ctx, f, by, open, map[string]string{drillLabel: ""})
	r := Report{LeftBehind: left}
	for _, e := range endings {
		r.Cases = append(r.Cases, Case{Ref: e.Ref, Outcome: e.Outcome, OK: e.Err == nil})
	}
	if err == nil && len(left) > 0 {
		err = fault.New(fault.KindFound, "%d sandboxes of drills could not be removed", len(left))
	}
	return r, err
}

// removeWithin bounds one ending of the clean-up. It is less than cleanUpTimeout, so that
// the remaining sandboxes can still be listed.
const removeWithin = 10 * time.Second

// removeStaged ends and deletes the sandboxes with the labels, each once, and lists again
// for proof. It also removes new ones in that listing, which were starting when their drill
// was killed.
func removeStaged(ctx context.Context, f *fleet.Fleet, by string, open runs.Opener, labels map[string]string) ([]sandbox.Ending, []sandbox.Ref, error) {
	var endings []sandbox.Ending
	asked := map[sandbox.Ref]bool{}
	for {
		listing := f.Collect(ctx, providers.Query{All: true})
		var left []sandbox.Ref
		var fresh []sandbox.Sandbox
		for _, s := range withLabels(listing.Items, labels) {
			left = append(left, s.Ref())
			if !asked[s.Ref()] {
				asked[s.Ref()], fresh = true, append(fresh, s)
			}
		}
		if len(fresh) == 0 || ctx.Err() != nil {
			return endings, left, errors.Join(listing.Err(), ctx.Err())
		}
		for e := range endStaged(ctx, f, fresh, fleet.EndOptions{Delete: true, By: by, Wait: removeWithin}, open) {
			endings = append(endings, e)
		}
	}
}

func endStaged(ctx context.Context, f *fleet.Fleet, targets []sandbox.Sandbox, how fleet.EndOptions, open runs.Opener) iter.Seq[sandbox.Ending] {
	return safety.End(ctx, f, targets, safety.Options{Verb: safety.VerbDrill, How: how, Open: open})
}

// withLabels selects the sandboxes that have all labels; an empty value matches any.
func withLabels(items []sandbox.Sandbox, labels map[string]string) []sandbox.Sandbox {
	var out []sandbox.Sandbox
	for _, s := range items {
		fits := true
		for key, value := range labels {
			got, has := s.Labels[key]
			fits = fits && has && (value == "" || got == value)
		}
		if fits {
			out = append(out, s)
		}
	}
	return out
}
