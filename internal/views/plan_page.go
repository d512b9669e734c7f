package views

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/reconcile"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// The pages of plans have what would be terminated at the end, next to the question; what
// stays is summed above.

const planTitle = "This is the plan; nothing is changed yet.\n"

// TimeInBothZones writes a time in UTC, and in the zone of this machine where that is another.
func TimeInBothZones(at time.Time, here *time.Location) string {
	text := at.UTC().Format("2006-01-02 15:04:05 UTC")
	if local := at.In(here); local.Format("15:04:05") != at.UTC().Format("15:04:05") {
		text += " (" + local.Format("15:04:05 MST") + " here)"
	}
	return text
}

// cleanupPlanPage shows people what a cleanup would terminate. Wide, it has each sandbox that
// stays, too. Here is the zone of this machine.
func cleanupPlanPage(s *output.Sheet, r *end.CleanupResult, here *time.Location, wide bool) {
	noneOwned, once, own := r.NoneOwned()
	if noneOwned > 0 {
		s.Text(fmt.Sprintf("0 of %d can be ended: none of them is yours (%s).", noneOwned, ops.JoinCounts(r.Survey.Unowned())))
		addKnown(s, "end them once", once)
		s.Field("make them yours", own)
		s.Text("")
	} else {
		s.Text(planTitle)
	}
	if at := r.Survey.Cutoff(); !at.IsZero() {
		s.Text("Selecting sandboxes created before " + TimeInBothZones(at, here) + ".\n")
	}
	s.Section(fmt.Sprintf("Would stay: %d", len(r.Survey.Kept)))
	if wide {
		rows := make([][]any, len(r.Survey.Kept))
		for i, j := range r.Survey.Kept {
			rows[i] = []any{TaskAndName(j.Sandbox), j.Sandbox.Ref(), j.KeepReason, j.Reason}
		}
		s.Table([]string{"name", "ref", "reason", "why"}, rows)
	} else {
		keptTable(s, r.Survey.Kept)
	}
	notes := r.KeptLines()
	if noneOwned == 0 {
		notes = append(notes, r.UnownedText())
	}
	for _, text := range notes {
		if text != "" {
			s.Text(text + ".\n")
		}
	}
	guardTable(s, r.Guards)
	plannedTable(s, plannedRows(r, wide), r.Survey.At)
	var active []string
	for _, j := range r.Survey.Selected {
		if j.Verdict.Activity == sandbox.True {
			active = append(active, j.Sandbox.Ref().String())
		}
	}
	if len(active) > 0 {
		s.Text(fmt.Sprintf("\n%d of them are active, and --ignore-activity ends them all the same: %s", len(active), sandbox.FormatFirst(active, shownActive)))
	}
}

// shownActive is how many active sandboxes a plan names.
const shownActive = 20

// plannedRows are what a cleanup would terminate. Where all of it is stuck, the reason is the
// cause alone.
func plannedRows(r *end.CleanupResult, wide bool) []plannedRow {
	selected := r.Survey.Selected
	why := SandboxRow.Why
	if !slices.ContainsFunc(selected, func(j cleanup.Judgement) bool { return j.Verdict.Stuck != sandbox.True }) {
		why = SandboxRow.causeText
	}
	planned := make([]plannedRow, len(selected))
	for i, j := range selected {
		planned[i] = plannedRow{j.Sandbox, cmp.Or(why(SandboxRow{Sandbox: j.Sandbox, Verdict: j.Verdict, Now: r.Survey.At}), j.Reason), j.Verdict.Cause}
		if wide {
			planned[i].why = j.Reason
		}
	}
	return planned
}

// keptTable sums why sandboxes stay, the most frequent reason first.
func keptTable(s *output.Sheet, kept []cleanup.Judgement) {
	n := make(map[cleanup.KeepReason]int)
	for _, j := range kept {
		n[j.KeepReason]++
	}
	reasons := slices.SortedFunc(maps.Keys(n), func(a, b cleanup.KeepReason) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b))
	})
	rows := make([][]any, len(reasons))
	for i, reason := range reasons {
		rows[i] = []any{n[reason], reason, keepText(reason)}
	}
	s.Table([]string{"count", "reason", "meaning"}, rows)
}

// keepText says what a reason to stay means, and what would change it.
func keepText(r cleanup.KeepReason) string {
	switch r {
	case cleanup.KeepProtected:
		return "by label sbx/keep or the configuration"
	case cleanup.KeepNotSelected:
		return "the rule does not select them"
	case cleanup.KeepAgeUnknown:
		return "no age, or one in the future"
	case cleanup.KeepUnknown:
		return "a selector cannot be evaluated"
	case cleanup.KeepAgeLimit:
		return "their agent type may run longer"
	case cleanup.KeepNotOwned:
		return "not yours by the configuration; --unowned includes them once"
	case cleanup.KeepEnded:
		return "they have ended already"
	case cleanup.KeepEnding:
		return "their end was requested already"
	case cleanup.KeepPaused:
		return "--include-paused includes them"
	case cleanup.KeepNeedsDelete:
		return "only --delete would change them"
	case cleanup.KeepStateUnknown:
		return "their state is not known to sbx"
	case cleanup.KeepAlive:
		return "they are active"
	case cleanup.KeepActivityUnknown:
		return "no source shows whether they are active"
	case cleanup.KeepNotBroken:
		return "healthy, or their health is unknown"
	case cleanup.KeepRefused:
		return "their provider would refuse it"
	case cleanup.KeepNone:
	}
	return ""
}

// guardTable shows the limits of a run.
func guardTable(s *output.Sheet, guards []safety.Guard) {
	if len(guards) == 0 {
		return
	}
	s.Section("Guards")
	rows := make([][]any, len(guards))
	for i, g := range guards {
		value, limit := g.Figures()
		rows[i] = []any{g.Name, value, limit, guardVerdict(g)}
	}
	s.Table([]string{"guard", "value", "limit", "verdict"}, rows)
}

func guardVerdict(g safety.Guard) string {
	switch {
	case g.IsTooFew():
		return fmt.Sprintf("ok: %d or fewer may always go", safety.FractionFrom)
	case g.OK:
		return "ok"
	case g.Answer != "":
		return "would ask"
	}
	return ops.WithDetail("refuses", g.OverrideFlag())
}

// plannedRow is one sandbox that would be terminated, and why.
type plannedRow struct {
	sandbox.Sandbox

	why   string
	cause sandbox.Cause
}

// plannedTable shows what would be terminated.
func plannedTable(s *output.Sheet, list []plannedRow, now time.Time) {
	s.Section(fmt.Sprintf("Would be terminated: %d%s", len(list), sharesOf(list)))
	targets := make([]ops.PlannedEnd, len(list))
	for i, p := range list {
		targets[i] = ops.PlannedEnd{Ref: p.Ref(), Reason: p.why, Sandbox: p.Sandbox}
	}
	PlannedEndsTable(s, targets, now)
}

// PlannedEndsTable shows what a question is about, right above it.
func PlannedEndsTable(s *output.Sheet, targets []ops.PlannedEnd, now time.Time) {
	rows := make([][]any, len(targets))
	for i, e := range targets {
		rows[i] = []any{TaskAndName(e.Sandbox), e.Ref, e.Sandbox.Labels[teamLabel], knownAge(e.Sandbox, now), e.Reason}
	}
	s.Compact([]string{"name", "ref", "team", "age", "why"}, rows)
}

func knownAge(s sandbox.Sandbox, now time.Time) any {
	if d, source := s.Age(now); source != sandbox.AgeUnknown {
		return d
	}
	return nil
}

// sharesOf counts what would be terminated by profile and cause; "" = the table says as much.
func sharesOf(list []plannedRow) string {
	var c look.Census
	for _, p := range list {
		c.Add(p.Provider, triage.Verdict{Stuck: sandbox.True, Cause: p.cause})
	}
	if len(list) < 2 {
		return ""
	}
	return "; " + causeShares(c.Causes)
}

// ActPage shows what an act would do, and at most mostKept of what stays.
func ActPage(s *output.Sheet, act *ops.Act, now time.Time) {
	if n := len(act.Kept); n > 0 {
		s.Section(fmt.Sprintf("Would stay: %d", n))
		PlannedEndsTable(s, act.Kept[:min(n, mostKept)], now)
		if n > mostKept {
			s.Text(fmt.Sprintf("and %d more.\n", n-mostKept))
		}
	}
	s.Section(fmt.Sprintf("Would %s: %d", act.Verb, len(act.Targets)))
	if len(act.Targets) > 0 {
		PlannedEndsTable(s, act.Targets, now)
	}
	if act.Objection != "" {
		s.Text(act.Objection + ".\n")
	}
}

// mostKept is how many of what stays a page of an act names.
const mostKept = 10

// ActItemLine is what an operation reports while it acts, for people; "" = nothing that they need.
func ActItemLine(item any) string {
	switch i := item.(type) {
	case ops.RunStarted:
		return "run " + i.RunID
	case sandbox.Ending:
		return BulkEndingLine(i)
	case reconcile.Done:
		return ReconcileDoneLine(i)
	case launch.Forbidden:
		return fmt.Sprintf("%s: will not publish (%.1fs)", i.Task, i.After.Seconds())
	case launch.NotGone:
		return i.Task + ": a sandbox is not verified gone: " + i.Err.Error()
	case error:
		return "error: " + i.Error()
	}
	return ""
}

// TerminatePlanPage shows people what would be terminated.
func TerminatePlanPage(s *output.Sheet, plan *ops.Act) {
	s.Text(planTitle)
	if len(plan.Kept) > 0 {
		s.Section(fmt.Sprintf("Would stay: %d", len(plan.Kept)))
		rows := make([][]any, len(plan.Kept))
		for i, e := range plan.Kept {
			rows[i] = []any{TaskAndName(e.Sandbox), e.Ref, e.Reason}
		}
		s.Compact([]string{"name", "ref", "why"}, rows)
	}
	guardTable(s, plan.Guards)
	list := make([]plannedRow, len(plan.Targets))
	for i, e := range plan.Targets {
		list[i] = plannedRow{e.Sandbox, e.Reason, sandbox.CauseNone}
	}
	plannedTable(s, list, plan.At)
}
