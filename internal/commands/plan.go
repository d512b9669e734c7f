package commands

import (
	"fmt"

	"sbx/internal/output"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// planned is one sandbox of a plan.
type planned struct {
	Ref    sandbox.Ref `json:"ref"`
	Reason string      `json:"reason"`
}

// plan sorts the targets by what would become of them.
func (r *endRun) plan() (selected, kept []planned) {
	selected, kept = []planned{}, []planned{}
	for _, s := range r.targets {
		why := r.protected(s)
		switch {
		case why != "":
		case s.State == "":
			why = "it is gone already"
		case s.State.Ended() && !r.o.delete:
			why = "it has ended already"
		case s.State == sandbox.StateStopped && !r.o.delete:
			why = "needs_delete: it is stopped, and only a delete goes further"
		default:
			selected = append(selected, planned{s.Ref(), "named by hand; " + string(s.State)})
			continue
		}
		kept = append(kept, planned{s.Ref(), why})
	}
	return selected, kept
}

// showPlan prints what would be done; nothing is. There is no cutoff: nothing
// was chosen by age.
func (r *endRun) showPlan(p *output.Printer, failed error) error {
	selected, kept := r.plan()
	guards := []safety.Guard{}
	if failed == nil {
		guards = r.guards()
	}
	return p.ShowAs(output.Document{
		Schema: terminateSchema,
		Fields: output.Fields{{Key: "plan", Value: output.Fields{
			{Key: "run_id", Value: r.id},
			{Key: "cutoff", Value: nil},
			{Key: "selected", Value: selected},
			{Key: "kept", Value: kept},
			{Key: "guards", Value: guards},
		}}},
		Human: func(s *output.Sheet) { planPage(s, selected, kept, guards) },
	}, r.planVerdict(failed), append(r.lost, failed)...)
}

// planVerdict is about what could not be found: a plan that a guard would
// refuse is a good plan.
func (r *endRun) planVerdict(failed error) error {
	if failed != nil {
		return failed
	}
	seen := make([]sandbox.Ending, len(r.targets))
	for i, s := range r.targets {
		seen[i] = sandbox.Ending{Ref: s.Ref(), Outcome: sandbox.OutcomeVerified}
	}
	return r.verdict(seen)
}

func planPage(s *output.Sheet, selected, kept []planned, guards []safety.Guard) {
	part := func(title string, list []planned) {
		s.Section(fmt.Sprintf("%s: %d", title, len(list)))
		rows := make([][]any, len(list))
		for i, e := range list {
			rows[i] = []any{e.Ref, e.Reason}
		}
		s.Table([]string{"ref", "why"}, rows)
	}
	s.Text("Nothing was done; this is the plan.\n")
	part("Would end", selected)
	part("Would stay", kept)
	s.Section("Guards")
	rows := make([][]any, len(guards))
	for i, g := range guards {
		verdict := "ok"
		if !g.OK {
			verdict = "would refuse or ask"
		}
		value, limit := g.Figures()
		rows[i] = []any{g.Name, limit, value, verdict}
	}
	s.Table([]string{"guard", "limit", "value", "verdict"}, rows)
}
