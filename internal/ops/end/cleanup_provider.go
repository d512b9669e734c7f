package end

import (
	"context"
	"fmt"
	"slices"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/runs"
)

// runProviderCleanups starts the providers' own cleanups, behind a gate of their own: they
// choose by themselves, so each profile is named, whether it is production or not.
func (r *cleanupRun) runProviderCleanups(ctx context.Context) (*CleanupResult, error) {
	what, flag := "its own cleanup", "--provider-side"
	if r.req.Emergency {
		what, flag = "its emergency cleanup of everything not critical", "--emergency"
	}
	names := r.req.Profiles
	if len(names) == 0 {
		return nil, fault.Usage("%s needs --provider: it takes no selectors", flag).WithHint("name it with --provider")
	}
	for _, name := range names {
		if !slices.Contains(r.req.Production, name) || !r.req.Yes {
			return nil, fault.New(fault.KindRefused, "%s would start %s; nothing was done", name, what).
				WithHint("to do it: --provider %s %s --production %s --yes", name, flag, name)
		}
	}
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		var err error
		if r.fleet, err = r.env.Only(ctx, names...); err != nil { // those that were named, whatever is selected
			return nil, err
		}
		whole := r.fleet
		left, err := r.restrictToBusyProfiles(ctx)
		if err != nil {
			return nil, err
		}
		if r.fleet != nil {
			names = r.fleet.Names()
		} else {
			names, r.fleet = nil, whole
		}
		return r.journalProviderCleanups(ctx, names, left)
	})
}

// journalProviderCleanups runs the own cleanup of each of these profiles, with a journal. The shares that
// are left are of the profiles that have nothing to do.
func (r *cleanupRun) journalProviderCleanups(ctx context.Context, names []string, left []cleanup.Share) (*CleanupResult, error) {
	r.survey = cleanup.Survey{At: r.env.Now()}
	for _, name := range names {
		r.survey.Shares = append(r.survey.Shares, cleanup.Share{Profile: name})
	}
	r.survey.Shares = append(r.survey.Shares, left...)
	layer, coverageGap := r.layerAndGap()
	w, err := r.env.Runs().Begin(ctx, runs.JournalRequired, r.id, runs.Begin{
		Actor: r.env.Actor(), Verb: runs.VerbCleanup, Layer: layer, CoverageGap: coverageGap, Plan: r.survey.Plan(r.id).Recorded(), Profiles: r.survey.Records(r.watch.Redact),
	}, r.watch)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	r.watch.Item(ops.RunStarted{RunID: r.id})
	run := &cleanup.Run{Fleet: r.fleet, Environment: r.world, Record: w.Writer}
	for i, name := range names {
		r.watch.Note(name + " runs its own cleanup")
		endings, err := run.RunProviderCleanup(ctx, name, r.req.Emergency)
		r.survey.Shares[i].Err = err
		for _, e := range endings {
			r.endings = append(r.endings, e)
			r.watch.Item(e)
		}
	}
	return r.closeJournal(ctx, w), nil
}

// profilesOverUsage gives the profiles of which more than --if-usage-above of a quota is used,
// and the shares of the others, which have nothing to do. A profile without a known quota is an
// error and no reason to end anything.
func (r *cleanupRun) profilesOverUsage(ctx context.Context) (over []string, left []cleanup.Share, err error) {
	quotas := r.fleet.Quotas(ctx)
	r.used = map[string]float64{}
	silent := 0
	for _, name := range r.fleet.Names() {
		q := ops.QuotaOf(quotas, name)
		used, fullest, known := providers.HighestUse(q.Quotas)
		if known {
			r.used[name] = used
		}
		switch {
		case q.Err != nil && fault.KindOf(q.Err) != fault.KindUnsupported:
			left = append(left, cleanup.Share{Profile: name, Err: q.Err})
		case !known:
			silent++
			left = append(left, cleanup.Share{Profile: name, Err: fault.New(fault.KindUnsupported, "it reports no quota, and max_sandboxes is not set").
				At(name, "quota").WithHint("%s", ops.HintMaxSandboxes)})
		case used > float64(r.req.UsageAbove)/100:
			r.watch.Note(fmt.Sprintf("%s uses %.0f%% of its %s", name, used*100, fullest.Name))
			over = append(over, name)
		default:
			r.watch.Note(fmt.Sprintf("%s uses %.0f%% of its %s: nothing to do", name, used*100, fullest.Name))
			left = append(left, cleanup.Share{Profile: name, BelowQuota: true})
		}
	}
	if silent > 0 && silent == len(r.fleet.Names()) {
		return nil, nil, fault.New(fault.KindUnsupported, "no selected provider reports a quota").WithHint(
			"%s; `%s providers` shows which providers report a quota", ops.HintMaxSandboxes, r.env.Process.Name(),
		)
	}
	return over, left, nil
}

// restrictToBusyProfiles keeps the profiles with use above UsageAbove and returns the others; with
// none the fleet is nil.
func (r *cleanupRun) restrictToBusyProfiles(ctx context.Context) (left []cleanup.Share, err error) {
	if r.req.UsageAbove == 0 {
		return nil, nil
	}
	over, left, err := r.profilesOverUsage(ctx)
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		r.fleet = nil
		return left, nil
	}
	r.fleet, err = r.fleet.Narrow(over)
	return left, err
}
