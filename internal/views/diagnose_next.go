package views

import (
	"fmt"
	"slices"
	"strconv"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// next are the commands to type, the most useful first.
func (d Investigation) next() []step {
	switch {
	case d.one != nil:
		return d.one.Next()
	case d.Task != nil:
		return []step{attemptsOf(d.Task)}
	}
	return d.nextOfFleet()
}

// nextOfFleet names what helps against what was found. The commands of the stuck groups stand beside
// them.
func (d Investigation) nextOfFleet() []step {
	var steps []step
	if d.Census.Stuck > 0 {
		steps = append(steps, d.planStep())
	}
	likely := func(id string) bool {
		return slices.ContainsFunc(d.Causes, func(c triage.Finding) bool { return c.ID == id && c.Confidence != sandbox.Hint })
	}
	has := func(id string) bool {
		return slices.ContainsFunc(d.Flags, func(f triage.Flag) bool { return f.ID == id && f.IsProblem() }) ||
			slices.ContainsFunc(d.Causes, func(c triage.Finding) bool { return c.ID == id })
	}
	if n := len(d.Unjudged); n > 0 {
		steps = append(steps, step{fmt.Sprintf("one of the %d not judged", n), "inspect " + ShellWord(d.Unjudged[0].String())})
	}
	if has("cleanup_overdue") || has("cleanup_fails") || has("cleanup_not_running") {
		steps = append(steps, step{"see why cleanup does not do its work", "cron check"})
	}
	if has("counts_differ") || has("state_corruption") {
		steps = append(steps, compareRecords())
	}
	if likely("resource_exhaustion") || len(d.Errors) > 0 {
		steps = append(steps, step{"check accounts and quotas", "doctor"})
	}
	if has("sandbox_timeout_high") {
		steps = append(steps, step{"see which tasks hit time limits", "report"})
	}
	if len(steps) == 0 {
		steps = append(steps, step{stuckStep("verify") + ": compare with the targets", "verify"})
	}
	return steps
}

// stuckStep names a step of the runbook: "6 end".
func stuckStep(id string) string {
	known, _ := triage.StuckStep(id)
	return known.Label()
}

// planStep plans the end of all that are stuck, with the flags without which a cleanup keeps them.
func (d Investigation) planStep() step {
	plan := step{strconv.FormatInt(d.Census.Stuck, 10), "cleanup --stuck"}
	unowned := 0
	for _, n := range d.Unowned {
		unowned += n
	}
	switch {
	case unowned == 0:
		plan.Why = fmt.Sprintf("plan the end of all %d", d.Census.Stuck)
	case int64(unowned) == d.Census.Stuck:
		plan.Why += ", none yours"
	default:
		plan.Why += fmt.Sprintf(", %d not yours", unowned)
	}
	plan.Why = stuckStep("end") + ": " + plan.Why
	if unowned > 0 {
		plan.Command += unownedFlag
	}
	if d.MaxDelete > 0 && d.Census.Stuck > int64(d.MaxDelete) {
		plan.Command += fmt.Sprintf(" --max-delete %d", d.Census.Stuck)
	}
	return plan
}

// unownedFlag lets a cleanup end what the configuration gives no owner.
const unownedFlag = " --unowned"
