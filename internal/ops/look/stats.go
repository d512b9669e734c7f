package look

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// StatsRequest says how the figures are taken.
type StatsRequest struct {
	Look bool // ask those that may be stuck themselves
}

// Figures are the figures of one provider, or of all together.
type Figures struct {
	Provider     string
	ProviderType string
	Counts       triage.FleetSignals
	Stuck        *int64          // nil where the listing is missing
	Unjudged     *int64          // of which it is not known whether they are stuck; nil likewise
	Census       Census          // what both count
	Ages         []time.Duration // of running ones, where known
	Limits       triage.Thresholds
	Flags        []triage.Flag // of one provider; none of all together
}

// Subject are the figures as checks judge them.
func (f Figures) Subject() *check.Subject {
	return &check.Subject{Provider: f.Provider, Figures: f.Counts, Limits: f.Limits, Stuck: f.Stuck, Unjudged: f.Unjudged}
}

// StatsResult are the figures of all providers that could be asked.
type StatsResult struct {
	Providers []Figures
	Total     Figures
	Census    Census        // of all together
	MayRun    []sandbox.Ref // listed nowhere, and counted as active since their requested end is not proved
	Alerts    []alert.Alert // that are pending or firing; this verb evaluates none
	Errors    []error
}

// Stats counts sandboxes at every provider.
func Stats(ctx context.Context, env *ops.Env, req StatsRequest, watch ops.Observer) (*StatsResult, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	progress := watch.Progress(fmt.Sprintf("asking %d providers", len(f.Names())))
	defer progress.Done()
	providers := f.Stats(ctx)
	counted, errs := takeCensus(ctx, f, providers, env.Judging(req.Look, progress))
	r := &StatsResult{}
	for _, s := range providers {
		if s.Err != nil {
			errs = append(errs, s.Err)
			continue
		}
		if s.ItemsErr != nil {
			errs = append(errs, s.ItemsErr)
		}
		figures := providerFigures(env, s, counted[s.Provider])
		r.Providers = append(r.Providers, figures)
		r.Census.Join(figures.Census)
		r.MayRun = append(r.MayRun, s.MayRun...)
	}
	r.Errors = ops.CauseOnce(ctx, errs)
	r.Total = totalFigures(env, r.Providers)
	r.Alerts = env.OpenAlerts(ctx, f.Names())
	keepStats(env, f.Names(), r)
	return r, nil
}

func providerFigures(e *ops.Env, s fleet.ProviderStats, counted Census) Figures {
	now := e.Now()
	f := Figures{
		Provider: s.Provider, ProviderType: s.ProviderType,
		Limits: e.Thresholds(sandbox.Sandbox{Provider: s.Provider, ProviderType: s.ProviderType}),
	}
	f.Counts = s.Signals(f.Limits.StuckAge, now)
	f.Flags = check.Flags(f.Subject(), now)
	if s.ItemsErr != nil {
		return f
	}
	for box := range s.Listed() {
		if age, source := box.Age(now); box.State == sandbox.StateRunning && source != sandbox.AgeUnknown {
			f.Ages = append(f.Ages, age)
		}
	}
	f.Census, f.Stuck, f.Unjudged = counted, &counted.Stuck, &counted.Unjudged
	return f
}

// totalFigures adds up the figures of the providers. A figure that one of them does not report
// has no total.
func totalFigures(e *ops.Env, all []Figures) Figures {
	sum := Figures{Limits: e.Thresholds(sandbox.Sandbox{})}
	if len(all) == 0 {
		return sum
	}
	add := func(of func(Figures) *int64) *int64 {
		total := new(int64)
		for _, f := range all {
			n := of(f)
			if n == nil {
				return nil
			}
			*total += *n
		}
		return total
	}
	sum.Counts = triage.FleetSignals{
		Active:         add(func(f Figures) *int64 { return f.Counts.Active }),
		Provisioning:   add(func(f Figures) *int64 { return f.Counts.Provisioning }),
		Terminating:    add(func(f Figures) *int64 { return f.Counts.Terminating }),
		TotalCreated:   add(func(f Figures) *int64 { return f.Counts.TotalCreated }),
		TotalDestroyed: add(func(f Figures) *int64 { return f.Counts.TotalDestroyed }),
		TimedOut:       add(func(f Figures) *int64 { return f.Counts.TimedOut }),
	}
	sum.Stuck = add(func(f Figures) *int64 { return f.Stuck })
	sum.Unjudged = add(func(f Figures) *int64 { return f.Unjudged })
	if sum.Stuck == nil {
		return sum // one listing is missing, so the ages are not all there
	}
	for _, f := range all {
		sum.Census.Join(f.Census)
		sum.Ages = append(sum.Ages, f.Ages...)
	}
	return sum
}

// PercentileAge is a percentile of ages by nearest rank, so that it is the age of a real one.
// There must be one at least.
func PercentileAge(ages []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(ages))
	return sorted[max((percent*len(sorted)+99)/100, 1)-1]
}

// takeCensus judges what all providers list, at once, and counts it for each; errors are why
// some could not be judged.
func takeCensus(ctx context.Context, f *fleet.Fleet, all []fleet.ProviderStats, how fleet.Judging) (map[string]Census, []error) {
	var items []sandbox.Sandbox
	for _, s := range all {
		if s.ItemsErr == nil {
			items = append(items, s.Items...)
		}
	}
	counted := map[string]Census{}
	judged := f.Judge(ctx, items, how)
	for _, j := range judged {
		c := counted[j.Sandbox.Provider]
		c.Add(j.Sandbox.Provider, j.Verdict)
		counted[j.Sandbox.Provider] = c
	}
	return counted, ops.FailedLooks(judged)
}

// Census counts judgements, those that were not made included.
type Census struct {
	Stuck, Unjudged int64
	Unlooked        int64                            // of the unjudged, those that were not queried
	Causes          map[string]map[sandbox.Cause]int // of the stuck ones, by profile
}

// Add counts one verdict.
func (c *Census) Add(profile string, v triage.Verdict) {
	switch {
	case v.Stuck == sandbox.True:
		c.Stuck++
		c.addCause(profile, v.Cause, 1)
	case v.Unjudged():
		c.Unjudged++
		if v.NeedsLook() {
			c.Unlooked++
		}
	}
}

func (c *Census) addCause(profile string, cause sandbox.Cause, n int) {
	if c.Causes == nil {
		c.Causes = map[string]map[sandbox.Cause]int{}
	}
	if c.Causes[profile] == nil {
		c.Causes[profile] = make(map[sandbox.Cause]int)
	}
	c.Causes[profile][cause] += n
}

// Join adds the counts of another census.
func (c *Census) Join(o Census) {
	c.Stuck, c.Unjudged, c.Unlooked = c.Stuck+o.Stuck, c.Unjudged+o.Unjudged, c.Unlooked+o.Unlooked
	for profile, causes := range o.Causes {
		for cause, n := range causes {
			c.addCause(profile, cause, n)
		}
	}
}

// CausesOfAll are the causes of the stuck ones at all profiles together.
func (c *Census) CausesOfAll() map[sandbox.Cause]int {
	all := make(map[sandbox.Cause]int)
	for _, causes := range c.Causes {
		for cause, n := range causes {
			all[cause] += n
		}
	}
	return all
}

func censusOf(judged []fleet.Judged) Census {
	var c Census
	for _, j := range judged {
		c.Add(j.Sandbox.Provider, j.Verdict)
	}
	return c
}

func keepStats(e *ops.Env, profiles []string, r *StatsResult) {
	ev := history.Event{Verb: "stats", Providers: profiles, Figures: []history.Figure{
		{Name: ops.FigureActive, Value: r.Total.Counts.Active},
		{Name: ops.FigureStuck, Value: r.Total.Stuck},
		{Name: ops.FigureUnjudged, Value: r.Total.Unjudged},
	}}
	for _, p := range r.Providers {
		ev.Flags = append(ev.Flags, ops.KeptFlags(p.Flags, p.Provider+": ")...)
	}
	e.KeepConclusion(ev, r.Errors...)
}
