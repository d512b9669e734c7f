package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// Judged is a sandbox with its verdict.
type Judged struct {
	Sandbox sandbox.Sandbox
	Verdict triage.Verdict
	Failed  error             // why a source of the look failed: Observation.FailedErr; nil = none did
	Figures *selector.Figures // of its usage, by the look; nil = nobody looked
	Signals triage.Signals    // of the look
	At      time.Time         // when it was judged
	// Output are the newest lines of its log, oldest first, as far as the look has read it; see Judging.Lines.
	Output   []sandbox.LogLine
	Answered sandbox.Verdict // Observation.Answers, also where an edge is suspected
}

// Judging are the options of Judge.
type Judging struct {
	Now        func() time.Time
	Thresholds func(sandbox.Sandbox) triage.Thresholds // of its profile and agent type
	// Look observes the sandboxes whose records do not decide, as a cleanup does, and those of
	// which Open is true. Nil = no others.
	Look bool
	Open func(Judged) bool
	// Usage also reads the usage of those that run for longer than the watch age and whose record
	// shows them at work: they can loop or leak. It is the oldest MostUsage of each call.
	Usage bool
	// Beside are other running sandboxes of the same profiles, which are not judged: they show whether an edge
	// answers for any (SuspectedEdges).
	Beside []Answers
	Lines  int                // how many lines of output are kept of each observation
	Seen   func(LookProgress) // is told how far the look is, by one goroutine at a time; nil = nobody
}

// MostUsage is for how many sandboxes at work the usage is read, a request or two each.
const MostUsage = 500

// Judge judges sandboxes by their records and, with Look or Open, by an observation of each one
// whose record does not decide. A sandbox that cannot be observed, in the time of Look, has no verdict.
func (f *Fleet) Judge(ctx context.Context, items []sandbox.Sandbox, how Judging) []Judged {
	ctx, stop := limitLook(ctx)
	defer stop()
	judged := make([]Judged, len(items))
	var open []sandbox.Sandbox
	var at, atWork []int
	for i, s := range items {
		now := how.Now()
		judged[i] = Judged{Sandbox: s, At: now, Verdict: triage.Judge(s, triage.Signals{}, how.Thresholds(s), now)}
		switch {
		case how.Look && judged[i].Verdict.NeedsLook() || how.Open != nil && how.Open(judged[i]):
			open, at = append(open, s), append(at, i)
		case how.Usage && worksOn(judged[i], how.Thresholds(s)):
			atWork = append(atWork, i)
		}
	}
	atWork = oldest(judged, atWork)
	count := newLookCount(len(open)+len(atWork), how.Seen)
	var wg sync.WaitGroup
	wg.Go(func() { f.addUsage(ctx, judged, atWork, how, count) })
	f.look(ctx, open, Looking{Thresholds: how.Thresholds}, count, func(i int, o Observation) {
		judged[at[i]] = how.judge(o, open[i])
	})
	wg.Wait()
	if how.Look {
		f.doubtEdges(ctx, judged, how)
	}
	return judged
}

// judge is the judgement by an observation of a sandbox, whose record did not decide.
func (how Judging) judge(o Observation, record sandbox.Sandbox) Judged {
	t, now := how.Thresholds(record), how.Now()
	sig := o.Signals(t)
	j := Judged{
		Sandbox: o.Sandbox, At: now, Verdict: triage.Judge(o.Sandbox, sig, t, now), Failed: o.FailedErr(), Figures: o.Figures(t),
		Signals: sig, Answered: o.Answers(),
	}
	if lines := o.Logs.Got; how.Lines > 0 && o.Logs.Err == nil {
		j.Output = slices.Clone(lines[max(0, len(lines)-how.Lines):]) // the others can be freed
	}
	return j
}

// worksOn says that a sandbox runs for longer than the watch age and is at work by its record.
func worksOn(j Judged, t triage.Thresholds) bool {
	age, source := j.Sandbox.Age(j.At)
	return j.Sandbox.State == sandbox.StateRunning && j.Verdict.Activity == sandbox.True && source != sandbox.AgeUnknown && age > t.WatchAge
}

// oldest are the oldest MostUsage of those at work.
func oldest(judged []Judged, atWork []int) []int {
	age := func(i int) time.Duration {
		age, _ := judged[i].Sandbox.Age(judged[i].At)
		return age
	}
	slices.SortStableFunc(atWork, func(a, b int) int { return cmp.Compare(age(b), age(a)) })
	return atWork[:min(len(atWork), MostUsage)]
}

// addUsage judges those at work by their usage too. One whose usage cannot be read stays as its
// record says.
func (f *Fleet) addUsage(ctx context.Context, judged []Judged, atWork []int, how Judging, count *lookCount) {
	items := make([]sandbox.Sandbox, len(atWork))
	for n, i := range atWork {
		items[n] = judged[i].Sandbox
	}
	f.ForEach(items, func(n int) {
		defer count.begin(items[n].Provider)()
		o := f.ObserveUsage(ctx, items[n], nil, true)
		if o.Usage.Err != nil || len(o.Usage.Got) == 0 {
			return
		}
		judged[atWork[n]] = how.judge(o, items[n])
	})
}
