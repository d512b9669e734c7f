package commands

import (
	"context"
	"slices"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

// byProvider starts the providers' own cleanups, behind a gate of their own: they
// choose by themselves, so each profile is named, whether it is production or not.
func (r *cleanupRun) byProvider(ctx context.Context, p *output.Printer) error {
	what, flag := "its own cleanup", "--provider-side"
	if r.o.emergency {
		what, flag = "its emergency cleanup, which ends all that it holds not to be critical", "--emergency"
	}
	names := r.d.Globals.Providers
	if len(names) == 0 {
		return fault.Usage("%s needs the profile named: it takes no selection", flag).WithHint("name it with --provider")
	}
	for _, name := range names {
		if !slices.Contains(r.o.production, name) || !r.o.yes {
			return fault.New(fault.KindRefused, "%s would start %s; nothing was done", name, what).
				WithHint("if that is what you want: --provider %s %s --production %s --yes", name, flag, name)
		}
	}
	return r.locked(ctx, p, func(ctx context.Context) error {
		var err error
		if r.fleet, err = r.d.Fleet(ctx); err != nil {
			return err
		}
		whole := r.fleet
		left, err := r.narrowToPressed(ctx, p)
		if err != nil {
			return err
		}
		if r.fleet != nil {
			names = r.fleet.Names()
		} else {
			names, r.fleet = nil, whole
		}
		return r.letProviders(ctx, p, names, left)
	})
}

// letProviders lets these profiles clean up; the shares that are left are of those that
// have nothing to do.
func (r *cleanupRun) letProviders(ctx context.Context, p *output.Printer, names []string, left []cleanup.Share) error {
	r.survey = cleanup.Survey{At: r.d.Now()}
	for _, name := range names {
		r.survey.Shares = append(r.survey.Shares, cleanup.Share{Profile: name})
	}
	r.survey.Shares = append(r.survey.Shares, left...)
	layer, shortfall := r.layer()
	w, err := r.d.BeginRun(ctx, p, r.id, cleanup.Begin{Actor: r.d.Actor(), Verb: ops.VerbCleanup, Layer: layer, Shortfall: shortfall, Plan: r.survey.Plan(r.id), Profiles: r.survey.Records(p.Redact)})
	if err != nil {
		return err
	}
	defer w.Release()
	list, err := r.list(p)
	if err != nil {
		return err
	}
	run := &cleanup.Run{Fleet: r.fleet, World: r.world, Journal: w, Redact: p.Redact}
	for i, name := range names {
		p.Note(name + " cleans up by its own rule")
		endings, err := run.ByProvider(ctx, name, r.o.emergency)
		r.survey.Shares[i].Err = err
		for _, e := range endings {
			r.endings = append(r.endings, e)
			views.AddEnding(list, e, false)
		}
	}
	return r.finish(ctx, w, list)
}
