package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// doSteps does some steps of a section, one after the other.
func (r *runner) doSteps(ctx context.Context, s section, some []runbook.Step, q quantifier) error {
	for _, step := range some {
		if err := r.doStep(ctx, step, s.possible, q); err != nil {
			return err
		}
		if rec := r.run.Step(string(step.ID)); step.Kind() == runbook.KindConfirm && rec.State == Done && rec.Verdict == sandbox.False {
			return r.skipAll(s.steps, "the answer to "+string(step.ID)+" was no")
		}
	}
	return nil
}

func (r *runner) skipAll(steps []runbook.Step, why string) error {
	for _, s := range steps {
		if rec := r.run.Step(string(s.ID)); !rec.State.IsOver() {
			rec.State, rec.Reason = Skipped, why
			if err := r.save(rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// doesNotApply begins the reason of a step whose condition does not hold.
const doesNotApply = "it does not apply: "

// Applies is false for a step of a branch that is not done, and for one whose condition does not hold.
func (s *Step) Applies() bool {
	return s.State != NotSelected && (s.State != Skipped || !strings.HasPrefix(s.Reason, doesNotApply))
}

// save puts a step on record and reports it.
func (r *runner) save(rec *Step) error {
	redactStep(rec, func(text string) string { return r.env.RedactText(r.watch.Redact(text)) })
	write := r.out.write
	if rec.isLook() {
		write = r.out.writeSoon
	}
	err := write(entryStep, rec)
	r.watch.Item(*rec)
	return err
}

// redactStep takes secrets out of what was read, and out of what people typed.
func redactStep(s *Step, redact func(string) string) {
	s.Reason = redact(s.Reason)
	for i := range s.Answers {
		s.Answers[i].Answer = redact(s.Answers[i].Answer)
	}
	for i := range s.Evidence {
		s.Evidence[i] = redact(s.Evidence[i])
	}
	if s.Act == nil {
		return
	}
	s.Act.Error = redact(s.Act.Error)
	for _, targets := range [][]Target{s.Act.Targets, s.Act.Kept} {
		for i := range targets {
			targets[i].Reason = redact(targets[i].Reason)
		}
	}
	for i := range s.Act.Outcomes {
		s.Act.Outcomes[i].Reason = redact(s.Act.Outcomes[i].Reason)
	}
}

// doStep does one step. The steps of a dry run behind its first act depend on that.
func (r *runner) doStep(ctx context.Context, s runbook.Step, possible runbook.Word, q quantifier) error {
	rec := r.run.Step(string(s.ID))
	switch {
	case rec.State.IsOver():
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.dependsOn != "":
		rec.DependsOn, rec.Reason = r.dependsOn, "depends on the step "+r.dependsOn
		r.watch.Item(*rec)
		return nil
	}
	progress := r.watch.Progress(rec.Title)
	defer progress.Done()
	rec.State, rec.BeganAt, rec.Reason, rec.Answers, rec.Evidence, rec.Verdict = Running, r.env.Now().UTC(), "", nil, nil, ""
	if err := r.save(rec); err != nil {
		return err
	}
	began := time.Now()
	if rec.Act.IsOpen() { // first of all: what became of it
		if err := r.recover(ctx, rec); err != nil {
			return err
		}
	}
	if s.When != "" {
		if v, evidence := r.evaluate(ctx, s.When, ofAny); v != sandbox.True {
			rec.State, rec.Evidence = Skipped, evidence
			rec.Reason = doesNotApply + strings.Join(evidence, "; ")
			if v == sandbox.Unknown {
				rec.Reason = "it is not known whether it applies: " + strings.Join(evidence, "; ")
			}
			return r.finish(ctx, rec, began)
		}
	}
	if err := r.perform(ctx, s, rec, possible, q); err != nil {
		return err
	}
	if rec.State == Running { // until its end: a record that is cut off must not have it done
		rec.State = Done
	}
	return r.finish(ctx, rec, began)
}

// finish closes a step. One in which the run was interrupted stays open.
func (r *runner) finish(ctx context.Context, rec *Step, began time.Time) error {
	if ctx.Err() != nil {
		rec.State, rec.Reason = Running, "interrupted"
		return errors.Join(r.save(rec), context.Cause(ctx))
	}
	if rec.State == Pending { // somebody else does it, or a dry run stops here
		rec.BeganAt = time.Time{}
		return r.save(rec)
	}
	rec.EndedAt, rec.Took = r.env.Now().UTC(), max(rec.Took, time.Since(began))
	return r.save(rec)
}

// perform does what a step says. It leaves the state of one that succeeds.
func (r *runner) perform(ctx context.Context, s runbook.Step, rec *Step, possible runbook.Word, q quantifier) error {
	switch s.Kind() {
	case runbook.KindCollect:
		r.collect(ctx, s, rec)
	case runbook.KindCheck:
		limited, stop := r.limited(ctx, s)
		defer stop()
		rec.Verdict, rec.Evidence = r.evaluate(limited, s.Check, q)
	case runbook.KindWaitUntil:
		limited, stop := r.limited(ctx, s)
		defer stop()
		r.waitUntil(limited, s, rec)
	case runbook.KindManual:
		return r.manual(ctx, s, rec)
	case runbook.KindConfirm:
		return r.confirm(ctx, s, rec)
	case runbook.KindAct:
		return r.act(ctx, s, rec, possible)
	}
	return nil
}

// limited is the time that sbx has for a step.
func (*runner) limited(ctx context.Context, s runbook.Step) (context.Context, context.CancelFunc) {
	if s.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, s.Timeout, fault.New(fault.KindPartial, "the step reached its limit of %s", sandbox.FormatDuration(s.Timeout)))
}

// invalidate forgets what was read: something has changed, or time has passed.
func (r *runner) invalidate() {
	r.facts.invalidate()
	clear(r.given)
}

// collect runs the collectors of a step at once. What was read since the last change is not read
// again.
func (r *runner) collect(ctx context.Context, s runbook.Step, rec *Step) {
	limited, stop := r.limited(ctx, s)
	defer stop()
	var missing []source
	for _, id := range s.Collect {
		from := sourceOf(string(id))
		if _, fresh := r.facts.readAt[from]; !fresh && !slices.Contains(missing, from) {
			missing = append(missing, from)
		}
	}
	failed := make(map[source]error)
	for _, g := range r.readAll(limited, missing) {
		failed[g.source] = stepError(ctx, limited, g.err)
	}
	var errs []error
	rec.Verdict = sandbox.True
	for _, id := range s.Collect {
		from := sourceOf(string(id))
		if failed[from] != nil {
			errs = append(errs, failed[from])
			continue
		}
		g := r.given[from]
		rec.Answers = append(rec.Answers, g.answers[string(id)]...)
		rec.Took = max(rec.Took, g.took[string(id)])
		if lost := lostText(g.lost); lost != "" {
			rec.Verdict = sandbox.Unknown
			rec.Evidence = append(rec.Evidence, "not read: "+lost)
		}
		if g.verdict != nil {
			rec.Verdict = g.verdict(string(id))
		}
	}
	if len(errs) > 0 {
		rec.State, rec.Verdict, rec.Reason = Failed, sandbox.Unknown, oneLine(errors.Join(errs...))
	}
}

// waitUntil looks again and again until the condition holds everywhere.
func (r *runner) waitUntil(ctx context.Context, s runbook.Step, rec *Step) {
	every := s.Every
	if every <= 0 {
		every = runbook.DefaultEvery
	}
	if r.run.DryRun { // it looks once
		if rec.Verdict, rec.Evidence = r.evaluate(ctx, s.WaitUntil, ofEvery); rec.Verdict != sandbox.True {
			rec.State, rec.Reason = Pending, "a dry run: it would wait for at most "+sandbox.FormatDuration(s.Within)
		}
		return
	}
	rec.Verdict, rec.Evidence = r.await(ctx, s.WaitUntil, s.Within, every)
	if rec.Verdict != sandbox.True {
		rec.State, rec.Reason = Failed, fmt.Sprintf("not so within %s: %s", sandbox.FormatDuration(s.Within), strings.Join(rec.Evidence, "; "))
	}
}

// await reads anew until a condition holds everywhere, at most for within. The last look decides.
func (r *runner) await(ctx context.Context, text runbook.Condition, within, every time.Duration) (sandbox.Verdict, []string) {
	limit := time.Now().Add(within)
	for {
		r.invalidate()
		verdict, evidence := r.evaluate(ctx, text, ofEvery)
		left := time.Until(limit)
		if verdict == sandbox.True || left <= 0 || ctx.Err() != nil {
			return verdict, evidence
		}
		back := r.leave()
		err := r.env.PauseRound(ctx, time.After(min(every, left)))
		back()
		if err != nil {
			return verdict, evidence
		}
	}
}

// byFlag is who answers what --yes answers.
const byFlag = "--yes"

// manual is done by a person, who says when it is done.
func (r *runner) manual(ctx context.Context, s runbook.Step, rec *Step) error {
	lines := []string{r.fill(s.Manual)}
	for _, line := range s.Commands {
		lines = append(lines, "$ "+r.fill(line))
	}
	if s.Ask != "" { // known before it is done
		lines = append(lines, "it will be asked: "+r.fill(s.Ask))
	}
	rec.Evidence = lines
	switch {
	case r.run.DryRun:
		rec.State, rec.Reason = Pending, "a person does it"
		return nil
	case !r.watch.Attended():
		rec.State, rec.Reason = Skipped, "a person does it, and nobody is at a terminal"
		return nil
	}
	r.watch.Item(*rec) // what is to be done, before the question
	done, err := r.askWhetherDone(ctx, rec)
	if err != nil {
		return err
	}
	if !done {
		rec.State, rec.Reason = Skipped, "skipped by "+r.env.Process.User()
		return nil
	}
	if s.Ask == "" {
		return nil
	}
	answer, err := r.ask(ctx, rec, ops.Question{Prompt: r.fill(s.Ask) + " "})
	if err != nil {
		return err
	}
	rec.Answers = append(rec.Answers, Answer{Question: r.fill(s.Ask), Answer: answer, Known: answer != "", By: r.env.Process.User()})
	return nil
}

// maxAsked is how often an answer that is none is asked for again: an input without end is no person.
const maxAsked = 10

// askWhetherDone asks until the answer is Enter, which is done, or skip. Without one the run waits.
func (r *runner) askWhetherDone(ctx context.Context, rec *Step) (bool, error) {
	prompt := "press Enter when it is done, or type skip: "
	for range maxAsked {
		text, err := r.ask(ctx, rec, ops.Question{Prompt: prompt})
		switch text = strings.TrimSpace(text); {
		case err != nil:
			return false, err
		case text == "":
			return true, nil
		case strings.EqualFold(text, "skip"):
			return false, nil
		}
		prompt = "that is neither: press Enter alone when it is done, or type skip: "
	}
	return false, r.wait(rec, fault.New(fault.KindRefused, "the step %s needs Enter or skip, and got neither", rec.ID).WithHint("%s", r.goOnHint("")))
}

// confirm goes on only if a person says yes.
func (r *runner) confirm(ctx context.Context, s runbook.Step, rec *Step) error {
	question := r.fill(s.Confirm)
	answer, by := "yes", byFlag
	switch {
	case r.run.DryRun:
		rec.State, rec.Reason = Pending, "a person is asked: "+question
		return nil
	case r.req.Yes:
	case !r.watch.Attended():
		return r.wait(
			rec,
			fault.New(fault.KindRefused, "the step %s needs an answer, and this is not a terminal: %s", s.ID, question).WithHint("%s", r.goOnHint("--yes")),
		)
	default:
		var err error
		if answer, err = r.ask(ctx, rec, ops.Question{Prompt: question + " Type yes to go on, anything else to leave the rest out: ", Word: "yes"}); err != nil {
			return err
		}
		by = r.env.Process.User()
	}
	rec.Verdict = sandbox.VerdictOf(strings.EqualFold(answer, "yes"))
	rec.Answers = append(rec.Answers, Answer{Question: question, Answer: answer, Known: true, By: by})
	return nil
}

// ask puts a question to a person. An input that ends is no answer: the run waits.
func (r *runner) ask(ctx context.Context, rec *Step, q ops.Question) (string, error) {
	back := r.leave()
	text, answered, err := r.watch.Ask(ctx, q)
	back()
	switch {
	case ctx.Err() != nil:
		return "", r.interrupted(ctx, rec)
	case err != nil:
		return "", err
	case !answered:
		return "", r.wait(rec, fault.New(fault.KindRefused, "the step %s needs an answer, and the input ended", rec.ID).WithHint("%s", r.goOnHint("")))
	}
	return text, nil
}

// interrupted leaves a step open for the next process that goes on with the run.
func (r *runner) interrupted(ctx context.Context, rec *Step) error {
	rec.State, rec.Reason = Running, "interrupted"
	return errors.Join(context.Cause(ctx), r.save(rec))
}

// wait leaves a step open: the run waits for an answer.
func (r *runner) wait(rec *Step, why error) error {
	rec.State, rec.Reason = Pending, "it waits for an answer"
	r.waiting = why
	return errors.Join(why, r.save(rec))
}

// goOnHint says how a run goes on.
func (r *runner) goOnHint(flags string) string {
	return fmt.Sprintf("go on with `%s`", strings.TrimSpace(r.env.Process.Name()+" runbook run --resume "+r.run.ID+" "+flags))
}
