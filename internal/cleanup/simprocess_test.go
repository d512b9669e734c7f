package cleanup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// bulk is one bulk ending with the same calls in the same order as the command.
type bulk struct {
	inc    *incarnation
	order  order
	rule   cleanup.Rule
	world  cleanup.Environment
	fleet  *fleet.Fleet
	survey cleanup.Survey
	id     string
	meant  map[sandbox.Ref]int // which sandbox of an id the plan means
}

// gens records which sandbox a plan means; that never changes.
func (b *bulk) gens(ref sandbox.Ref, gen int) {
	if _, there := b.meant[ref]; !there {
		b.meant[ref] = gen
	}
}

func (inc *incarnation) bulk(o order) *bulk {
	b := &bulk{meant: map[sandbox.Ref]int{}, inc: inc, order: o, rule: o.rule(inc.s.mut), world: inc.s.world(inc, o), id: fmt.Sprintf("r-%s-%02d", inc.now().UTC().Format("20060102t150405"), inc.n)}
	members := make([]fleet.Member, 0, len(inc.s.clouds))
	for _, c := range inc.s.clouds {
		members = append(members, fleet.Member{Provider: inc.provider(c)})
	}
	b.fleet = fleet.New(members, fleet.Options{Now: inc.now, Slots: o.slots})
	return b
}

func (b *bulk) locked(do func() error) error {
	release, err := b.inc.take(b.inc.ctx, b.order.lockWait)
	if err != nil {
		return err
	}
	defer release()
	return do()
}

// act surveys and ends.
func (b *bulk) act() error {
	return b.locked(func() error {
		if err := b.look(); err != nil {
			return err
		}
		return b.do(b.survey.Targets())
	})
}

// propose makes a plan and does nothing.
func (b *bulk) propose() (cleanup.Plan, error) {
	if err := b.look(); err != nil {
		return cleanup.Plan{}, err
	}
	plan := b.survey.Plan(b.id)
	if b.inc.s.mut.dryRunActs {
		return plan, b.do(b.survey.Targets())
	}
	return plan, nil
}

// apply ends at most what a plan names.
func (b *bulk) apply(text []byte) error {
	var plan cleanup.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return err
	}
	if err := plan.Check(b.inc.now(), time.Hour); err != nil {
		return err
	}
	b.rule = plan.Rule
	return b.locked(func() error {
		if err := b.look(); err != nil {
			return err
		}
		targets := b.survey.TargetsWithin(plan)
		b.survey.Narrow(targets)
		return b.do(targets)
	})
}

func (b *bulk) look() error {
	var err error
	b.survey, err = cleanup.TakeSurvey(b.inc.ctx, b.fleet, b.world, b.rule)
	if err == nil {
		b.inc.s.onSurvey(b)
	}
	return err
}

// do begins the journal, checks the guards and ends the targets.
func (b *bulk) do(targets []cleanup.Target) error {
	w, err := journal.Create(mount{b.inc}, b.id, b.inc.now)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	guards := b.survey.Guards(b.world)
	plan := b.survey.Plan(b.id)
	plan.Items = plan.Items[:0]
	for _, t := range targets {
		plan.Items = append(plan.Items, t.Item)
	}
	refused := cleanup.Refusal(guards)
	if b.inc.s.mut.ignoresGuards {
		guards, refused = nil, nil
	}
	b.inc.s.onBegin(b, plan, refused)
	begin := runs.Begin{Verb: "cleanup", Plan: plan.Recorded(), Guards: safety.Record(guards), Profiles: b.survey.Records(hideNothing)}
	if err := w.Append(runs.EntryBegin, begin); err != nil {
		return err
	}
	if refused != nil {
		_ = w.Append(runs.EntryConclusion, runs.Conclusion{ExitCode: fault.ExitCode(refused), Error: refused.Error(), Refused: true, Succeeded: []string{}})
		return refused
	}
	return b.end(w, targets)
}

// end ends the targets and closes the journal.
func (b *bulk) end(w *journal.Writer, targets []cleanup.Target) error {
	run := &cleanup.Run{
		Fleet: b.fleet, Environment: b.world, Rule: b.rule, Record: &runs.Writer{Journal: b.inc.s.mut.journal(w)}, Targets: targets,
		Wait: b.order.wait, Grace: 5 * time.Second, By: "simulation",
	}
	var endings []sandbox.Ending
	for e := range run.EndTargets(b.inc.ctx) {
		e, kept := b.inc.s.mut.ending(e, len(endings))
		if !kept {
			continue
		}
		endings = append(endings, e)
		b.inc.s.onEnding(b.inc, e)
	}
	verdict := b.survey.Verdict(endings)
	if kind := fault.KindOf(verdict); b.inc.ctx.Err() != nil && (kind == fault.KindCanceled || kind == fault.KindTimeout) {
		verdict = context.Cause(b.inc.ctx)
	}
	if b.inc.s.mut.alwaysSucceeds {
		verdict = nil
	}
	closing := runs.Conclusion{Counts: fleet.Count(endings), ExitCode: fault.ExitCode(verdict), Succeeded: b.survey.Succeeded(endings)}
	if err := w.Append(runs.EntryConclusion, closing); err != nil && verdict == nil && !b.inc.s.mut.alwaysSucceeds {
		verdict = err
	}
	b.inc.s.onEnd(b, endings, verdict)
	return verdict
}

// resume resumes an interrupted run.
func (b *bulk) resume(run string) error {
	return b.locked(func() error {
		log, err := journal.Read(mount{b.inc}, run)
		if err != nil {
			return err
		}
		h := runs.HistoryOf(log)
		switch {
		case h.Conclusion != nil && h.Conclusion.Refused && !b.inc.s.mut.resumesRefused:
			return fault.New(fault.KindRefused, "it was refused")
		case h.Broken != "" || h.StartedAt.IsZero():
			return fault.New(fault.KindRefused, "it cannot be gone on with: %s", h.Broken)
		}
		if b.fleet, err = b.fleet.Narrow(h.Profiles()); err != nil {
			return err
		}
		w, err := journal.Extend(mount{b.inc}, log, b.inc.now)
		if err != nil {
			return err
		}
		defer func() { _ = w.Close() }()
		if err := w.Append(runs.EntryResume, runs.Actor{Who: "simulation"}); err != nil {
			return err
		}
		b.id = h.RunID
		if b.rule, err = cleanup.RuleOf(h); err != nil {
			return err
		}
		b.rule.Unowned = true // as in the command: ownership was judged when the run began
		b.survey = cleanup.SurveyOf(h, b.rule, b.inc.now())
		b.inc.s.onResume(b)
		return b.end(w, b.inc.s.mut.targets(cleanup.ResumedTargets(h)))
	})
}

// goes runs one verb and records its result.
func (inc *incarnation) goes(do func() error) (err error, died bool) {
	err = do()
	s := inc.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if inc.dead {
		return nil, true
	}
	inc.done = true
	if err != nil {
		s.Logf("%s: exit %d, %v", inc, fault.ExitCode(err), err)
	} else {
		s.Logf("%s: exit 0", inc)
	}
	if errors.Is(err, errDead) {
		s.Breakf("%s lives, and met a dead handle: %v", inc, err)
	}
	return err, false
}
