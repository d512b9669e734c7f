package look

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
)

// fleetSources are what an investigation of all sandboxes reads: each profile is listed and looked
// at by itself, so that a slow one delays no other.
type fleetSources struct {
	names   []string
	stats   []*future[fleet.ProviderStats]
	judged  []*future[[]fleet.Judged]
	quotas  *future[[]fleet.ProviderQuota]
	cleanup *future[*opscron.CleanupStatusResult]
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
	d.result.Steps = runSteps(ctx, d.progress.Say, stepQuestions(d.cleanupEvery()), stepWork{
		stepCount:     func(ctx context.Context) ([]reply, error) { return d.answerCount(waitAll(ctx, src.stats)) },
		stepStuck:     src.ofListed(d.answerStuck),
		stepLogs:      src.ofListed(answerLogs),
		stepResources: src.ofListed(answerResources),
		stepCleanup: d.cleanupWork(src.cleanup, func(ctx context.Context) (int64, bool) {
			judged, lost, err := src.allJudged(ctx)
			return censusOf(judged).Stuck, err == nil && len(lost) == 0
		}),
	})
	still := *d // a source that answers late still uses d
	still.env = at(d.env, d.env.Now())
	still.concludeFleet(ctx, src.readNow())
	return nil
}

// at is the environment of conclusions: it has the settings of this one, and its time stands still.
func at(e *ops.Env, now time.Time) *ops.Env {
	p := e.Process
	p.Now = func() time.Time { return now }
	return &ops.Env{
		Process: p, Version: e.Version, Types: e.Types, Config: e.Config, Input: e.Input, Program: e.Program, Fleet: e.Fleet, Only: e.Only,
		Store: e.Store, Journals: e.Journals, Endings: e.Endings, Shared: e.Shared, Alive: e.Alive,
	}
}

// readFleet starts to read all sources.
func (d *diagnosis) readFleet(ctx context.Context, f *fleet.Fleet) (*fleetSources, error) {
	src := &fleetSources{names: f.Names(), cleanup: d.cleanupStatus(ctx)}
	src.quotas = begin(func() ([]fleet.ProviderQuota, error) { return f.Quotas(ctx), nil })
	how := fleet.Judging{Now: d.env.Now, Thresholds: d.env.Thresholds, Look: true, Usage: true}
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

// allJudged are the sandboxes of the profiles that were listed, and the profiles that were not.
func (src *fleetSources) allJudged(ctx context.Context) (judged []fleet.Judged, lost []string, err error) {
	parts, err := waitAll(ctx, src.judged)
	for i, f := range src.judged {
		if _, known := f.ready(); !known {
			lost = append(lost, src.names[i])
		}
	}
	return slices.Concat(parts...), lost, err
}

// ofListed is a step about the sandboxes that were listed. Of a profile without a list nothing is known: where no
// sandbox is left, nothing at all is, and else each answer says so.
func (src *fleetSources) ofListed(answer func([]fleet.Judged, error) ([]reply, error)) func(context.Context) ([]reply, error) {
	return func(ctx context.Context) ([]reply, error) {
		judged, lost, err := src.allJudged(ctx)
		replies, err := answer(judged, err)
		if err != nil || len(lost) == 0 {
			return replies, err
		}
		for i, r := range replies {
			switch {
			case !r.known:
			case len(judged) == 0:
				replies[i] = replyUnknown("the list of %s could not be read", strings.Join(lost, ", "))
			default:
				replies[i].text += "; unknown of " + strings.Join(lost, ", ")
			}
		}
		return replies, nil
	}
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

// readNow is what the sources have answered until now.
func (src *fleetSources) readNow() fleetLook {
	var look fleetLook
	look.quotas, _ = src.quotas.ready()
	if status, known := src.cleanup.ready(); known {
		look.cleanup = status
	}
	for i, name := range src.names {
		p := profileLook{name: name}
		stats, known := src.stats[i].ready()
		if known {
			p.stats = &stats
		}
		p.judged, p.listed = src.judged[i].ready()
		if !known || !p.listed {
			p.late = lateOr(name, src.stats[i], src.judged[i])
		}
		look.profiles = append(look.profiles, p)
	}
	return look
}

// lateOr is why a profile is not among the results.
func lateOr[T, U any](name string, a *future[T], b *future[U]) error {
	switch {
	case a.ended() && a.err != nil:
		return a.err
	case b.ended() && b.err != nil:
		return b.err
	}
	return unansweredError(name)
}
