package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// group is the part of a plan that is asked for by itself: the targets with one cause, of the operator or not.
type group struct {
	*actPlan

	name    string // its cause; "" = none is known
	unowned bool
	byFlags bool // the flags have answered for the whole plan
	place   string
}

// all are the targets of a plan, those that are not the operator's last.
func (p *actPlan) all() []ops.PlannedEnd {
	if p.unowned == nil {
		return p.Targets
	}
	return slices.Concat(p.Targets, p.unowned.Targets)
}

// groups parts a plan: what is the operator's, cause by cause, then what is not. What the flags answer for is one.
func (r *runner) groups(s runbook.Step, p *actPlan) []group {
	var all []group
	byFlags := r.flagsAllow(s, p, p.Act)
	if byFlags || !r.watch.Attended() {
		all = append(all, group{actPlan: p, byFlags: byFlags})
	} else {
		all = r.byCause(p, p.Act, false)
	}
	if p.unowned != nil {
		whole := *p.unowned
		whole.Targets = p.all()
		if r.req.Unowned && byFlags && r.flagsAllow(s, p, &whole) {
			all = append(all, group{actPlan: p.part(p.unowned, p.unowned.Targets), unowned: true, byFlags: true})
		} else {
			all = append(all, r.byCause(p, p.unowned, true)...)
		}
	}
	all = slices.DeleteFunc(all, func(g group) bool { return len(g.Targets) == 0 })
	var open []*group // nobody is asked twice
	for i := range all {
		if !r.wasDeclined(all[i].actPlan) {
			open = append(open, &all[i])
		}
	}
	for i, g := range open {
		if len(open) > 1 {
			g.place = fmt.Sprintf("group %d of %d: ", i+1, len(open))
		}
	}
	return all
}

// flagsAllow says that the flags answer for a whole act.
func (r *runner) flagsAllow(s runbook.Step, p *actPlan, act *ops.Act) bool {
	whole := p.part(act, act.Targets)
	return r.refuseByFlags(s, whole, r.unnamed(gateWord(s, whole), whole)) == nil
}

// part is a plan of some targets of an act.
func (p *actPlan) part(act *ops.Act, targets []ops.PlannedEnd) *actPlan {
	some := *act
	some.Targets = targets
	return &actPlan{Act: &some, kept: p.kept, byName: p.byName}
}

func (*runner) byCause(p *actPlan, act *ops.Act, unowned bool) []group {
	of := map[string][]ops.PlannedEnd{}
	var names []string
	for _, t := range act.Targets {
		if of[t.Cause] == nil {
			names = append(names, t.Cause)
		}
		of[t.Cause] = append(of[t.Cause], t)
	}
	var all []group
	for _, name := range names {
		all = append(all, group{actPlan: p.part(act, of[name]), name: name, unowned: unowned})
	}
	slices.SortStableFunc(all, func(a, b group) int { return len(b.Targets) - len(a.Targets) })
	return all
}

// about says what a person should know of a group first.
func (r *runner) about(g group) string {
	var parts []string
	if text := g.place + g.name; text != "" {
		parts = append(parts, strings.TrimSuffix(text, ": "))
	}
	if g.unowned {
		parts = append(parts, fmt.Sprintf("%d not yours, which the command line ends only with --unowned", len(g.Targets)))
	}
	if g.Refused != nil {
		parts = append(parts, "the command line ends so many only with "+g.Allow)
	}
	if left := r.leftText(); left != "" {
		parts = append(parts, left)
	}
	if len(parts) == 1 && parts[0] == g.name { // the rows say it
		parts = nil
	}
	if g.Objection != "" {
		parts = append(parts, g.Objection)
	}
	return strings.Join(parts, "; ")
}

// left is what a person has left at the gates of this run, by reference.
func (r *runner) left() map[string]Target {
	all := map[string]Target{}
	for _, s := range r.run.Steps {
		if s.Act == nil {
			continue
		}
		for _, t := range s.Act.Declined {
			all[t.Ref] = t
		}
	}
	return all
}

// wasDeclined says that a person has declined all targets of a plan at the gates of earlier steps.
func (r *runner) wasDeclined(p *actPlan) bool {
	left := r.left()
	return !slices.ContainsFunc(p.Targets, func(wanted ops.PlannedEnd) bool {
		_, declined := left[wanted.Ref.String()]
		return !declined
	})
}

// leftText names what a person has left at the gates of this run; "" = nothing.
func (r *runner) leftText() string {
	counts := map[string]int{}
	for _, t := range r.left() {
		counts[t.Cause]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	if len(parts) == 0 {
		return ""
	}
	return "left by your answer: " + strings.Join(parts, ", ")
}

// doGroups asks for each group of a plan, and acts on those that were allowed.
func (r *runner) doGroups(ctx context.Context, s runbook.Step, rec *Step, p *actPlan) error {
	planned := rec.Act.Targets
	var done []Target
	var changed *group
	for _, g := range r.groups(s, p) {
		named, yes, err := r.passGate(ctx, s, rec, g)
		if err != nil {
			return err
		}
		if !yes {
			rec.Act.Declined = append(rec.Act.Declined, g.targets()...)
			continue
		}
		r.named = append(r.named, named...)
		rec.Act.Targets = slices.Concat(done, g.targets())
		if err := r.executeRecorded(ctx, s, rec, g); err != nil || rec.State != Running {
			return err
		}
		if len(g.Targets) == 0 { // all of it has changed while the question was open
			changed = &g
		}
		done = append(done, g.targets()...)
	}
	rec.Act.Targets = planned
	switch {
	case len(done) > 0 || len(rec.Act.Outcomes) > 0:
	case len(rec.Act.Declined) > 0:
		rec.State, rec.Reason = Skipped, declined
	case changed != nil:
		rec.State, rec.Reason = Skipped, nothingToDo(changed.actPlan)
	}
	return nil
}

// leftSome ends an act of which a person has left a part: its effect cannot be seen on all.
func (r *runner) leftSome(rec *Step) {
	rec.Verdict, rec.Reason = sandbox.Unknown, r.leftText()
	if rec.Act.Error != "" {
		rec.State, rec.Verdict, rec.Reason = Failed, sandbox.False, rec.Act.Error
	}
}
