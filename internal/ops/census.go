package ops

import (
	"context"
	"fmt"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// partErrors are those of the parts that failed; an ability that is missing is no failure.
func partErrors(ctx context.Context, o fleet.Observation) []error {
	exit, work := o.Exit.Err, o.Work.Err
	if fault.KindOf(exit) == fault.KindNotFound {
		exit = nil // sbx started no program in it
	}
	if fault.KindOf(work) == fault.KindNotFound {
		work = nil // nobody ever heard of it
	}
	all := []error{o.Usage.Err, o.Health.Err, o.Events.Err, o.Logs.Err, exit, work}
	return causeOnce(ctx, slices.DeleteFunc(all, func(err error) bool {
		return err == nil || fault.KindOf(err) == fault.KindUnsupported
	}))
}

// causeOnce says a single time that ctx ended, instead of once for each thing that
// failed because of it.
func causeOnce(ctx context.Context, errs []error) []error {
	if ctx.Err() == nil {
		return errs
	}
	return append(slices.DeleteFunc(errs, fault.Interrupted), context.Cause(ctx))
}

// takeCensus judges what all providers list, at once, and counts it for each; errors are why
// some could not be judged.
func (e *Env) takeCensus(ctx context.Context, f *fleet.Fleet, all []fleet.ProviderStats, look bool) (map[string]Census, []error) {
	var items []sandbox.Sandbox
	for _, s := range all {
		if s.ItemsErr == nil {
			items = append(items, s.Items...)
		}
	}
	counted := map[string]Census{}
	judged := f.Judge(ctx, items, e.Judging(look))
	for _, j := range judged {
		c := counted[j.Sandbox.Provider]
		c.Add(j.Verdict)
		counted[j.Sandbox.Provider] = c
	}
	return counted, failedLooks(judged)
}

// failedLooks sums up why some of what was looked at could not be judged.
func failedLooks(judged []fleet.Judged) []error {
	var unjudged []fleet.Observation
	for _, j := range judged {
		if j.Seen != nil && j.Verdict.Unjudged() {
			unjudged = append(unjudged, *j.Seen)
		}
	}
	return fleet.FailedLooks(unjudged)
}

// Census counts what judgements say, so that no figure hides what nobody has judged.
type Census struct{ Stuck, Unjudged, unlooked int64 }

// Add counts one verdict.
func (c *Census) Add(v triage.Verdict) {
	switch {
	case v.Stuck == sandbox.True:
		c.Stuck++
	case v.Unjudged():
		c.Unjudged++
		if v.NeedsLook() {
			c.unlooked++
		}
	}
}

// Join adds the counts of another census.
func (c *Census) Join(o Census) {
	c.Stuck, c.Unjudged, c.unlooked = c.Stuck+o.Stuck, c.Unjudged+o.Unjudged, c.unlooked+o.unlooked
}

// Remark says what was not judged, and what would judge it; "" = everything was.
func (c *Census) Remark(look string) string {
	switch {
	case c.Unjudged == 0:
		return ""
	case c.unlooked > 0:
		return fmt.Sprintf("%d stuck, %d not judged: `%s` looks whether they work", c.Stuck, c.Unjudged, look)
	}
	return fmt.Sprintf("%d stuck, %d not judged: no source shows whether they work", c.Stuck, c.Unjudged)
}
