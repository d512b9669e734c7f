package commands

import (
	"context"
	"fmt"
	"strconv"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// run looks, and acts where it may.
func (r *cleanupRun) run(ctx context.Context, p *output.Printer) error {
	switch {
	case r.o.emergency, r.o.providerSide:
		return r.byProvider(ctx, p)
	case r.o.resume != "":
		return r.goOn(ctx, p)
	case r.o.apply != "":
		return r.applyPlan(ctx, p)
	case r.o.yes:
		return r.act(ctx, p)
	}
	return r.propose(ctx, p)
}

// propose shows the plan. A terminal may allow it by an answer.
func (r *cleanupRun) propose(ctx context.Context, p *output.Printer) error {
	if err := p.Format.Refuse("cleanup without --yes", output.RowFormats()...); err != nil {
		return err
	}
	if err := r.look(ctx, p); err != nil {
		return err
	}
	if r.o.explain != "" {
		return r.explain(p)
	}
	plan := r.survey.Plan(r.id)
	if r.o.out != "" {
		if err := writePlan(r.d.Path(r.o.out), plan); err != nil {
			return err
		}
	}
	asks := r.d.attended() && p.Format.Human() && r.o.out == "" && len(plan.Items) > 0 && cleanup.Refusal(r.survey.Guards(r.world)) == nil && r.named
	err := r.showPlan(p)
	if warn := r.textfile(ctx, fault.ExitCode(err), 0, true); warn != nil {
		p.Warn(warn.Error())
	}
	if r.o.out == "" && !r.d.attended() && ctx.Err() == nil {
		p.Warn("nothing was done; --yes acts") // also with -q: the line of a crontab that acts for nobody
	}
	if !asks || ctx.Err() != nil {
		return err
	}
	if allowed, askErr := r.ask(ctx, p); askErr != nil {
		return askErr
	} else if !allowed {
		return err
	}
	return r.within(ctx, p, plan)
}

// within looks again and ends at most what a plan names: while somebody read it,
// what it names may have gone to work.
func (r *cleanupRun) within(ctx context.Context, p *output.Printer, plan cleanup.Plan) error {
	return r.locked(ctx, p, func(ctx context.Context) error {
		if err := r.look(ctx, p); err != nil {
			return err
		}
		r.planned = true
		targets := r.survey.Within(plan)
		r.survey.Narrow(targets)
		return r.do(ctx, p, targets)
	})
}

// ask lets a terminal allow the plan: by the count when it is more than a few or
// something runs, else by y.
func (r *cleanupRun) ask(ctx context.Context, p *output.Printer) (bool, error) {
	n, running := len(r.survey.Selected), false
	for _, j := range r.survey.Selected {
		running = running || j.Sandbox.State == sandbox.StateRunning
	}
	word, question := "y", fmt.Sprintf("end these %d? type y: ", n)
	if n > safety.MaxUnasked || running {
		word = strconv.Itoa(n)
		question = fmt.Sprintf("type %s to end them, anything else to do nothing: ", word)
	}
	answer, err := r.d.ask(ctx, newAnswers(r.d), question)
	if err != nil {
		return false, err
	}
	if answer != word {
		p.Note("nothing was done")
		return false, nil
	}
	return true, nil
}

// act looks and ends under the lock, with nobody to ask.
func (r *cleanupRun) act(ctx context.Context, p *output.Printer) error {
	return r.locked(ctx, p, func(ctx context.Context) error {
		if err := r.look(ctx, p); err != nil {
			return err
		}
		return r.do(ctx, p, r.survey.Targets())
	})
}

// locked runs something while no other run of this state directory acts, and tells
// how it went.
func (r *cleanupRun) locked(ctx context.Context, p *output.Printer, do func(context.Context) error) error {
	return r.announced(ctx, p, func() error {
		return r.d.Exclusively(ctx, r.id, r.lockWait, func(ctx context.Context) error {
			r.d.SettleTasks(ctx, p)
			return do(ctx)
		})
	})
}

// look lists and judges everything.
func (r *cleanupRun) look(ctx context.Context, p *output.Printer) error {
	progress := p.Progress("looking at every sandbox")
	defer progress.Done()
	var err error
	if r.fleet, err = r.d.Fleet(ctx); err != nil {
		return err
	}
	left, err := r.narrowToPressed(ctx, p)
	if err != nil {
		return err
	}
	if r.fleet == nil { // nothing is pressed
		r.survey = cleanup.Survey{At: r.d.Now(), Rule: r.rule, Shares: left}
		return nil
	}
	r.remembering(ctx, p)
	r.survey, err = cleanup.Look(ctx, r.fleet, r.world, r.rule)
	if err != nil {
		return err
	}
	r.survey.Shares = append(r.survey.Shares, left...)
	if err := r.held.Err(); err != nil {
		r.survey.Sources = append(r.survey.Sources, err)
	}
	progress.Done()
	p.Note(fmt.Sprintf("found %d of %d sandboxes to clean up", len(r.survey.Selected), len(r.survey.Selected)+len(r.survey.Kept)))
	return nil
}

// do begins the journal, holds the run against the guards and ends the targets.
func (r *cleanupRun) do(ctx context.Context, p *output.Printer, targets []cleanup.Target) error {
	r.notice(ctx, p)
	guards := r.survey.Guards(r.world)
	plan := r.survey.Plan(r.id)
	plan.Items = plan.Items[:0]
	for _, t := range targets {
		plan.Items = append(plan.Items, t.Item)
	}
	layer, shortfall := r.layer()
	w, err := r.d.BeginRun(ctx, p, r.id, cleanup.Begin{
		Actor: r.d.Actor(), Verb: ops.VerbCleanup, Layer: layer, Shortfall: shortfall, Plan: plan, Guards: guards, Profiles: r.survey.Records(p.Redact), Kept: r.survey.Grounds(),
	})
	if err != nil {
		return err
	}
	defer w.Release()
	if refused := cleanup.Refusal(guards); refused != nil {
		if err := w.Finish(ctx, w.EndEntry(nil, refused, nil)); err != nil {
			p.Warn(err.Error())
		}
		return r.refuse(p, refused)
	}
	return r.end(ctx, p, w, targets)
}

// end ends the targets, prints what became of each as it is known, and closes the
// journal.
func (r *cleanupRun) end(ctx context.Context, p *output.Printer, w *ops.RunJournal, targets []cleanup.Target) error {
	run := &cleanup.Run{
		Fleet: r.fleet, World: r.world, Rule: r.rule, Journal: w, Targets: targets,
		Wait: r.wait, Grace: r.grace, By: r.d.ActsAs("cleanup"), Redact: p.Redact,
	}
	progress := p.Progress(fmt.Sprintf("ending %d sandboxes", len(targets)))
	defer progress.Done()
	list, err := r.list(p)
	if err != nil {
		return err
	}
	for e := range run.Do(ctx) {
		r.endings = append(r.endings, e)
		progress.Update(fmt.Sprintf("%d of %d", len(r.endings), len(targets)))
		views.AddEnding(list, e, false)
	}
	r.d.RecordEnds(ctx, p, r.fleet, r.endings)
	r.noteUnjudged(p)
	return r.finish(ctx, w, list)
}

// finish closes the journal and the list of what has ended. A run whose last line is
// not in the journal is no success.
func (r *cleanupRun) finish(ctx context.Context, w *ops.RunJournal, list *output.List[sandbox.Ending]) error {
	verdict := causeOr(ctx, r.survey.Verdict(r.endings))
	if err := w.Finish(ctx, w.EndEntry(r.endings, verdict, r.survey.Succeeded(r.endings))); err != nil {
		list.Fail(err)
		verdict = first(verdict, err)
	}
	return r.conclude(list, verdict)
}

// list opens the list of endings.
func (r *cleanupRun) list(p *output.Printer) (*output.List[sandbox.Ending], error) {
	spec := output.ListSpec[sandbox.Ending]{Schema: cleanupSchema, Columns: views.EndingColumns()}
	if len(p.Columns) == 0 {
		spec.Line = views.BulkEndingLine
	}
	list, err := output.NewList(p, spec)
	if err != nil {
		return nil, err
	}
	list.Set("run_id", r.id)
	return list, nil
}

// conclude adds what was left out and the sums.
func (r *cleanupRun) conclude(list *output.List[sandbox.Ending], verdict error) error {
	for _, err := range r.survey.Errs() {
		list.Fail(err)
	}
	list.Set("counts", fleet.Count(r.endings))
	list.Set("kept", r.survey.Grounds())
	list.Set("unowned", r.survey.Unowned())
	if len(r.survey.Errs()) == 0 {
		list.Succeeded()
	}
	return list.CloseAs(verdict)
}

// noteUnjudged tells people after a run what no rule could judge, and warns of what it
// left because nobody owns it: a run that cron starts is quiet, and would leave it
// again and again.
func (r *cleanupRun) noteUnjudged(p *output.Printer) {
	if text := r.unjudged(); text != "" {
		p.Note(text)
	}
	if text := r.unowned(); text != "" {
		p.Warn(text)
	}
}

// refuse prints a run that a guard kept from acting.
func (r *cleanupRun) refuse(p *output.Printer, refused error) error {
	list, err := r.list(p)
	if err != nil {
		return err
	}
	list.Fail(refused)
	return r.conclude(list, refused)
}
