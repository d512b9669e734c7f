package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/snapshot"
	"sbx/internal/triage"
)

// fleetSources are what an investigation of all sandboxes reads: each profile is listed and looked
// at by itself, so that a slow one delays no other.
type fleetSources struct {
	names   []string
	stats   []*future[fleet.ProviderStats]
	judged  []*future[[]fleet.Judged]
	quotas  *future[[]fleet.ProviderQuota]
	cleanup *future[*ops.CleanupStatusResult]
}

// diagnoseFleet investigates all sandboxes of the selected profiles.
func (d *diagnosis) diagnoseFleet(ctx context.Context) error {
	f, err := d.env.Fleet(ctx)
	if err != nil {
		return err
	}
	d.result.Providers = f.Names()
	limited, stop := context.WithTimeout(ctx, collectLimit)
	defer stop()
	src, err := d.readFleet(limited, f)
	if err != nil {
		return err
	}
	d.runSteps(ctx, map[string]stepWork{
		stepCount:     {countQuestions(), func(ctx context.Context) ([]reply, error) { return d.answerCount(src.allStats(ctx)) }},
		stepStuck:     {stuckQuestions(), func(ctx context.Context) ([]reply, error) { return d.answerStuck(src.allJudged(ctx)) }},
		stepLogs:      {logQuestions(), func(ctx context.Context) ([]reply, error) { return answerLogs(src.allJudged(ctx)) }},
		stepResources: {resourceQuestions(), func(ctx context.Context) ([]reply, error) { return answerResources(src.allJudged(ctx)) }},
		stepCleanup: d.cleanupWork(src.cleanup, func(ctx context.Context) (int64, bool) {
			judged, err := src.allJudged(ctx)
			return censusOf(judged).Stuck, err == nil
		}),
	})
	look := src.readNow()
	still := *d // a source that answers late still uses d
	still.env = at(d.env, d.env.Now())
	still.concludeFleet(ctx, look)
	if ctx.Err() == nil && d.req.Record {
		d.result.record = func() (*snapshot.Snapshot, error) { return still.recordFleet(context.WithoutCancel(ctx), look) }
	}
	return nil
}

// readFleet starts to read all sources.
func (d *diagnosis) readFleet(ctx context.Context, f *fleet.Fleet) (*fleetSources, error) {
	src := &fleetSources{names: f.Names(), cleanup: d.cleanupStatus(ctx)}
	src.quotas = begin(func() ([]fleet.ProviderQuota, error) { return f.Quotas(ctx), nil })
	how := fleet.Judging{Now: d.env.Now, Thresholds: d.env.Thresholds, Look: true, Usage: true, Facts: d.req.Record}
	for _, name := range src.names {
		one, err := f.Narrow([]string{name})
		if err != nil {
			return nil, err
		}
		stats := begin(func() (fleet.ProviderStats, error) {
			s := one.Stats(ctx)[0]
			return s, s.Err
		})
		src.stats = append(src.stats, stats)
		src.judged = append(src.judged, begin(func() ([]fleet.Judged, error) {
			<-stats.done
			if stats.value.ItemsErr != nil {
				return nil, stats.value.ItemsErr
			}
			how := how
			how.Seen = d.progress.Seen(name)
			return one.Judge(ctx, stats.value.Items, how), nil
		}))
	}
	return src, nil
}

// allStats are the figures of the profiles that answered; the error is of those that did not, where
// none did.
func (src *fleetSources) allStats(ctx context.Context) ([]fleet.ProviderStats, error) {
	return waitAll(ctx, src.stats)
}

// allJudged are the sandboxes of the profiles that were listed.
func (src *fleetSources) allJudged(ctx context.Context) ([]fleet.Judged, error) {
	parts, err := waitAll(ctx, src.judged)
	return slices.Concat(parts...), err
}

// waitAll gives what is there when all have answered or ctx ends. The error is that of all, where
// none has an answer.
func waitAll[T any](ctx context.Context, all []*future[T]) ([]T, error) {
	var got []T
	var errs []error
	for _, f := range all {
		value, err := f.wait(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, value)
	}
	if len(got) == 0 {
		return nil, errors.Join(errs...)
	}
	return got, nil
}

// rankCauses ranks the causes of groups of sandboxes and those of profiles.
func (d *diagnosis) rankCauses(judged []fleet.Judged, figures []Figures) {
	r := d.result
	ofGroups := append(d.groupCauses(judged, isStuck, r.Stuck, stuckAt), d.groupCauses(judged, isSuspected, r.Suspected, suspectedAt)...)
	r.Causes = rankAll(ofGroups, d.fleetCauses(figures))
}

// joinFleetFlags are the flags of all profiles, and that of cleanup where its state was read.
func (d *diagnosis) joinFleetFlags(figures []Figures, cleanup *ops.CleanupStatusResult) {
	flags := [][]triage.Flag{}
	for _, f := range figures {
		flags = append(flags, nameProvider(f))
	}
	d.result.Flags = joinFlags(flags)
	if cleanup != nil {
		d.result.Flags = append(d.result.Flags, cleanupFlag(cleanup, d.log))
	}
}

// lateOr is why a profile is not among the results.
func lateOr[T, U any](name string, a *future[T], b *future[U]) error {
	for _, err := range []error{endedError(a), endedError(b)} {
		if err != nil {
			return err
		}
	}
	return unansweredError(name)
}

func endedError[T any](f *future[T]) error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

func censusOf(judged []fleet.Judged) Census {
	var c Census
	for _, j := range judged {
		c.Add(j.Sandbox.Provider, j.Verdict)
	}
	return c
}

// profileFigures are those of stats, with what the investigation knows beside them; judged is nil
// where the sandboxes of the profile were not judged.
func (d *diagnosis) profileFigures(s fleet.ProviderStats, judged []fleet.Judged, quotas []fleet.ProviderQuota) Figures {
	f := providerFigures(d.env, s, censusOf(judged))
	if s.ItemsErr == nil && judged != nil {
		f.Counts.OverProvisioningAge = new(countWhere(judged, func(j fleet.Judged) bool {
			return j.Sandbox.State == sandbox.StateProvisioning && isStuck(j)
		}))
	}
	if countWhere(judged, func(j fleet.Judged) bool { return j.Verdict.Looked }) > 0 {
		f.Counts.Missing = new(countWhere(judged, func(j fleet.Judged) bool { return j.Signals.Exists == sandbox.False }))
	}
	f.Counts.QuotaUsed = cmp.Or(ops.HighestUse(quotas, s.Provider), f.Counts.QuotaUsed)
	if d.log != nil {
		d.log.AddTo(&f.Counts, f.Limits.CleanupEvery)
	}
	f.Flags = check.Flags(f.Subject(), d.env.Now())
	return f
}

func countWhere(judged []fleet.Judged, holds func(fleet.Judged) bool) int64 {
	n := int64(0)
	for _, j := range judged {
		if holds(j) {
			n++
		}
	}
	return n
}

// nameProvider writes the provider into the evidence of its flags.
func nameProvider(f Figures) []triage.Flag {
	flags := slices.Clone(f.Flags)
	for i := range flags {
		flags[i].Evidence = inProvider(f.Provider, flags[i].Evidence)
	}
	return flags
}

func inProvider(name string, evidence []sandbox.Evidence) []sandbox.Evidence {
	list := slices.Clone(evidence)
	for i := range list {
		list[i].What = name + ": " + list[i].What
	}
	return list
}

// joinFlags is one flag of each id over all profiles: true where it is true of one, with the
// evidence of those; else unknown where it is unknown of one.
func joinFlags(profiles [][]triage.Flag) []triage.Flag {
	var all []triage.Flag
	for _, flags := range profiles {
		for _, f := range flags {
			i := slices.IndexFunc(all, func(have triage.Flag) bool { return have.ID == f.ID })
			switch {
			case i < 0:
				all = append(all, f)
			case all[i].Verdict == f.Verdict:
				all[i].Evidence = slices.Concat(all[i].Evidence, f.Evidence)
			case f.Verdict == sandbox.True, f.Verdict == sandbox.Unknown && all[i].Verdict == sandbox.False:
				all[i] = f
			}
		}
	}
	return all
}

// fleetCauses are the causes that the figures of profiles show.
func (d *diagnosis) fleetCauses(figures []Figures) []triage.Finding {
	var all []triage.Finding
	for _, f := range figures {
		for _, c := range triage.FleetCauses(f.Counts, f.Flags, f.Limits, d.env.Now()) {
			c.Evidence = inProvider(f.Provider, c.Evidence)
			i := slices.IndexFunc(all, func(have triage.Finding) bool { return have.ID == c.ID && have.Confidence == c.Confidence })
			if i < 0 {
				all = append(all, c)
				continue
			}
			all[i].Evidence = append(all[i].Evidence, c.Evidence...)
		}
	}
	return all
}

// The questions of the runbook.
func countQuestions() []question {
	return []question{
		{"R19", "how many are active now?"},
		{"R20", "are any in provisioning?"},
		{"R21", "how long have the active ones run?"},
		{"R22", "is the count growing or stable?"},
	}
}

// answerCount answers R19 to R22 over the profiles that answered.
func (d *diagnosis) answerCount(stats []fleet.ProviderStats, err error) ([]reply, error) {
	if err != nil {
		return nil, err
	}
	var ages []time.Duration
	active, starting := map[string]int{}, map[string]int{}
	lost := []string{}
	var growth []string
	for _, s := range stats {
		f := providerFigures(d.env, s, Census{})
		ages = append(ages, f.Ages...)
		if s.Stats.Active == nil {
			lost = append(lost, s.Provider)
			continue
		}
		active[s.Provider] = int(*s.Stats.Active)
		if s.Stats.Provisioning != nil {
			starting[s.Provider] = int(*s.Stats.Provisioning)
		}
		if from, to, known := f.Counts.Growth(f.Limits.CleanupEvery, d.env.Now()); known {
			growth = append(growth, fmt.Sprintf("%s %s, %d to %d in %s", s.Provider, growthWord(from.Active, to.Active), from.Active, to.Active, sandbox.FormatDuration(to.At.Sub(from.At).Truncate(time.Second))))
		}
	}
	replies := []reply{countReply(active, lost), countReply(starting, lost), replyUnknown("no sandbox runs whose age is known"), replyUnknown("one count shows no trend; a later look compares")}
	switch len(ages) {
	case 0:
	case 1:
		replies[2] = replyWith("%s", sandbox.FormatElapsed(ages[0]))
	default:
		replies[2] = replyWith("%s to %s, half of them over %s, 5%% over %s", sandbox.FormatElapsed(PercentileAge(ages, 0)), sandbox.FormatElapsed(PercentileAge(ages, 100)), sandbox.FormatElapsed(PercentileAge(ages, 50)), sandbox.FormatElapsed(PercentileAge(ages, 95)))
	}
	if len(growth) > 0 {
		replies[3] = replyWith("%s", strings.Join(growth, "; "))
	}
	return replies, nil
}

func growthWord(from, to int64) string {
	switch {
	case to > from:
		return "growing"
	case to < from:
		return "shrinking"
	}
	return "stable"
}

// countReply is a sum with its shares.
func countReply(counts map[string]int, lost []string) reply {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	text := ops.WithDetail(strconv.Itoa(sum), sandbox.FormatCounts(counts))
	if len(counts) == 1 {
		text = strconv.Itoa(sum)
	}
	switch {
	case len(counts) == 0:
		return replyUnknown("no provider reports it")
	case len(lost) > 0:
		text += "; unknown of " + strings.Join(lost, ", ")
	}
	return replyWith("%s", text)
}
