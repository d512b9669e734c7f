package reconcile

import (
	"context"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// mark brings records of what has ended to their end, profile by profile. What a
// control plane merely accepts is proved by reading its records once more.
func (f *fixing) mark(ctx context.Context, yield func(Done) bool) bool {
	for _, side := range f.plan.Sides {
		source := f.e.Sources[side.Profile]
		var all []Done
		for _, r := range f.rows(ActMark) {
			if r.Ref.Provider == side.Profile {
				all = append(all, f.markOne(ctx, source, r))
			}
		}
		if source.Reread {
			f.recheck(ctx, source, all)
		}
		for _, d := range all {
			if !yield(d) {
				return false
			}
		}
	}
	return true
}

// markOne marks one record, unless its sandbox is there after all.
func (f *fixing) markOne(ctx context.Context, source Source, r Row) Done {
	began := time.Now()
	box, err := f.e.Fleet.Get(ctx, r.Ref)
	again := &pair{profile: r.Ref.Provider, key: r.Ref.ID, look: look{asked: true, box: box, err: err}}
	f.e.doubt(ctx, []*pair{again})
	err = again.look.err
	gone := again.look.gone()
	switch {
	case ctx.Err() != nil:
		return notAttempted(ctx, r)
	case err != nil && !gone:
		return done(r, sandbox.OutcomeFailed, err.Error(), err)
	case !gone && !box.State.Ended():
		return done(r, sandbox.OutcomeChanged, "it is "+string(box.State)+" by now", nil)
	}
	if err := f.scribe.intend(r); err != nil {
		return done(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	if err := source.Mark(ctx, recordRef(r), string(r.Cause)+": "+r.Reason); err != nil {
		return done(r, sandbox.OutcomeFailed, err.Error(), err)
	}
	d := done(r, sandbox.OutcomeVerified, "the record was brought to its end", nil)
	d.Duration = time.Since(began)
	return d
}

// recordRef is the sandbox as its record calls it.
func recordRef(r Row) sandbox.Ref {
	ref := r.Ref
	if len(r.Records) > 0 {
		ref.ID = r.Records[0].SandboxID
	}
	return ref
}

// recheck reads the records again: one that still claims life was accepted, and
// not done.
func (f *fixing) recheck(ctx context.Context, source Source, all []Done) {
	verified := func(d Done) bool { return d.Outcome == sandbox.OutcomeVerified }
	if !slices.ContainsFunc(all, verified) {
		return
	}
	records, err := source.collect(ctx)
	for i, d := range all {
		still := slices.ContainsFunc(records, func(r Record) bool {
			return r.SandboxID == recordRef(d.Row).ID && r.Live != sandbox.False
		})
		switch {
		case !verified(d):
		case err != nil:
			all[i].Outcome, all[i].Reason = sandbox.OutcomeAccepted, "accepted, but the records cannot be read again: "+err.Error()
			all[i].Err = fault.Placed(err, d.Ref.Provider, "records of "+source.Name)
		case still:
			all[i].Outcome, all[i].Reason = sandbox.OutcomeAccepted, "accepted, but the record is still there"
		default:
			gone := sandbox.Evidence{What: "record", Value: "ended or gone", Source: source.Name, At: f.e.Now()}
			all[i].Evidence = append(all[i].Evidence, gone)
		}
	}
}
