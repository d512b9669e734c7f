package ops

import (
	"context"
	"fmt"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

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

// Census counts judgements, those that were not made included.
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
