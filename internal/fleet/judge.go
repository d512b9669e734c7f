package fleet

import (
	"context"
	"sync"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Judged is a sandbox with the one judgement of it.
type Judged struct {
	Sandbox sandbox.Sandbox
	Seen    *Observation // what was asked of the sandbox itself; nil = nothing
	Verdict triage.Verdict
}

// Judging says how sandboxes are judged.
type Judging struct {
	Now        func() time.Time
	Thresholds func(sandbox.Sandbox) triage.Thresholds // of its profile and agent type
	// Look asks those themselves that their record leaves open, as a cleanup does.
	Look bool
}

// Judge judges sandboxes by their records and, with Look, by what a look at each shows
// that the record leaves open: all at once, since the slots of the fleet bound the
// requests. What cannot be looked at stays unjudged.
func (f *Fleet) Judge(ctx context.Context, items []sandbox.Sandbox, how Judging) []Judged {
	judged := make([]Judged, len(items))
	var all sync.WaitGroup
	for i, s := range items {
		judged[i] = how.byRecord(s)
		if how.Look && judged[i].Verdict.NeedsLook() {
			all.Go(func() {
				o := f.ObserveLife(ctx, s)
				judged[i] = Judged{Sandbox: o.Sandbox, Seen: &o, Verdict: o.Judge(how.Thresholds(s), how.Now())}
			})
		}
	}
	all.Wait()
	return judged
}

func (how Judging) byRecord(s sandbox.Sandbox) Judged {
	return Judged{Sandbox: s, Verdict: triage.Judge(s, triage.Signals{}, how.Thresholds(s), how.Now())}
}
