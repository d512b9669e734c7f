package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/task"
	"sbx/internal/views"
)

// slower is from what share on a difference of durations is told: less is what two
// runs at one provider differ by.
const slower = 1.5

// noticeable is the least difference of durations that is told.
const noticeable = time.Second

// difference says in one sentence what differs between the providers: whether it is
// the provider at all (S0-16).
func difference(all []outcome, jobs int) string {
	if len(all) < jobs || slices.ContainsFunc(all, func(o outcome) bool { return o.task.ID == "" || o.task.State == task.Stopped || !o.task.State.Over() }) {
		return "nothing can be said: it did not come to its end everywhere"
	}
	groups := endings(all)
	if len(groups) > 1 {
		var parts []string
		for _, g := range groups {
			parts = append(parts, g.ending+" at "+joinedNames(g.names))
		}
		return "the provider makes a difference: " + strings.Join(parts, ", ") + memoryWords(all)
	}
	if all[0].task.State != task.Completed {
		return "it is not the provider: " + groups[0].ending + " at all " + strconv.Itoa(len(all)) + memoryWords(all)
	}
	return "it completed at all " + strconv.Itoa(len(all)) + paceWords(all)
}

// ending is how a task ended, as far as two of them are compared.
func (o outcome) ending() string {
	e := o.exit()
	switch {
	case o.task.State == task.Completed:
		return "completed"
	case o.task.State == task.TimedOut:
		return "timed out (" + string(o.task.Reason) + ")"
	case e.Code != nil && *e.Code != 0:
		return fmt.Sprintf("%s (exit %d)", e.Class, *e.Code)
	}
	return ops.WithDetail(string(o.task.State), string(e.Class))
}

type group struct {
	ending string
	names  []string
}

// endings are the different ends with their providers, in the order of --compare.
func endings(all []outcome) []group {
	var groups []group
	for _, o := range all {
		i := slices.IndexFunc(groups, func(g group) bool { return g.ending == o.ending() })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{ending: o.ending()})
		}
		groups[i].names = append(groups[i].names, o.label)
	}
	return groups
}

// memoryWords tell memory limits that are not the same: the likeliest reason why one
// provider kills what another lets run.
func memoryWords(all []outcome) string {
	var words []string
	same := true
	for _, o := range all {
		limit := o.attempt().MemoryMB
		same = same && limit == all[0].attempt().MemoryMB
		if limit > 0 {
			words = append(words, fmt.Sprintf("%s %d MB", o.label, limit))
		}
	}
	if same || len(words) < len(all) {
		return ""
	}
	return "; their memory limits differ: " + strings.Join(words, ", ")
}

// paceWords tell the slowest, where it is slow.
func paceWords(all []outcome) string {
	least, most := all[0], all[0]
	for _, o := range all {
		d, known := o.took()
		if !known {
			return ""
		}
		if quick, _ := least.took(); d < quick {
			least = o
		}
		if slow, _ := most.took(); d > slow {
			most = o
		}
	}
	quick, _ := least.took()
	slow, _ := most.took()
	if slow-quick < noticeable || float64(slow) < slower*float64(quick) {
		return ", and none was much slower"
	}
	return fmt.Sprintf("; %s took %s, %s %s", most.label, views.DurationText(slow), least.label, views.DurationText(quick))
}

func joinedNames(names []string) string { return strings.Join(names, " and ") }
