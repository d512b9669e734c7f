package views

import (
	"fmt"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// TerminatePlanPage shows people what would end.
func TerminatePlanPage(s *output.Sheet, plan *ops.TerminatePlan) {
	part := func(title string, list []ops.PlannedEnd) {
		s.Section(fmt.Sprintf("%s: %d", title, len(list)))
		rows := make([][]any, len(list))
		for i, e := range list {
			rows[i] = []any{e.Ref, e.Reason}
		}
		s.Table([]string{"ref", "why"}, rows)
	}
	s.Text("Nothing was done; this is the plan.\n")
	part("Would end", plan.Selected)
	part("Would stay", plan.Kept)
	s.Section("Guards")
	rows := make([][]any, len(plan.Guards))
	for i, g := range plan.Guards {
		verdict := "ok"
		if !g.OK {
			verdict = "would refuse or ask"
		}
		value, limit := g.Figures()
		rows[i] = []any{g.Name, limit, value, verdict}
	}
	s.Table([]string{"guard", "limit", "value", "verdict"}, rows)
}
