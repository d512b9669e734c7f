package fleet

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Exit reads how the program that create started has ended, where the provider
// keeps that inside the sandbox; nil while it runs. fault.KindNotFound where sbx
// started none.
func (f *Fleet) Exit(ctx context.Context, ref sandbox.Ref) (*sandbox.Exit, error) {
	m, reader, err := able[providers.ExitReader](f, ref.Provider, "exit")
	if err != nil {
		return nil, err
	}
	return call(ctx, m, "exit "+ref.ID, func(ctx context.Context) (*sandbox.Exit, error) {
		return reader.Exit(ctx, ref.ID)
	})
}

// ProviderQuota are the limits of one profile's account.
type ProviderQuota struct {
	Provider string
	Quotas   []providers.Quota
	Err      error
}

// Quotas asks every provider that can tell, all at once, in the order of the fleet;
// the limit of the configuration (Member.MaxSandboxes) is one more quota. A profile
// with neither is left out.
func (f *Fleet) Quotas(ctx context.Context) []ProviderQuota {
	all := make([]ProviderQuota, len(f.members))
	var wg sync.WaitGroup
	for i, m := range f.members {
		reader, tells := providers.As[providers.QuotaReader](m.Provider)
		if !tells && m.MaxSandboxes == 0 {
			continue
		}
		wg.Go(func() {
			all[i] = ProviderQuota{Provider: m.Provider.Name()}
			if tells {
				all[i].Quotas, all[i].Err = bounded(ctx, m, "quota", reader.Quota)
			}
			if m.MaxSandboxes > 0 {
				all[i].addLimit(m.limitQuota(ctx))
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(all, func(q ProviderQuota) bool { return q.Provider == "" })
}

// addLimit adds the limit of the configuration, which also serves where the provider
// cannot tell its own.
func (q *ProviderQuota) addLimit(limit providers.Quota, err error) {
	if fault.KindOf(q.Err) == fault.KindUnsupported {
		q.Err = nil
	}
	if err != nil {
		q.Err = errors.Join(q.Err, err)
		return
	}
	q.Quotas = append(q.Quotas, limit)
}

// Known says that at least one limit is told with what is used of it.
func (q ProviderQuota) Known() bool {
	return slices.ContainsFunc(q.Quotas, func(one providers.Quota) bool { return one.Used != nil && one.Limit != nil && *one.Limit > 0 })
}

// Activity reads when a sandbox last showed life, by the provider and every source
// attached to it; the latest sign counts. An error of one of them stands beside what
// the others know: as long as a source that may have seen work fails, nothing is
// known to be silent. fault.KindNotFound or KindUnsupported: none of them knows it.
func (f *Fleet) Activity(ctx context.Context, s sandbox.Sandbox) (providers.Activity, error) {
	m, err := f.member(s.Provider)
	if err != nil {
		return providers.Activity{}, err
	}
	var latest providers.Activity
	var failed []error
	answered := false
	none := providers.Unsupported(m.Provider, "activity", f.providers())
	for _, v := range m.all() {
		reader, ok := providers.As[providers.ActivityReader](v.of)
		if !ok {
			continue
		}
		got, err := askAbout(ctx, m, v, s, "activity", reader.Activity)
		switch kind := fault.KindOf(err); kind {
		case fault.KindNone:
			answered, latest = true, latest.Later(got)
		case fault.KindUnsupported:
		case fault.KindNotFound, fault.KindGone:
			none = err
		default:
			failed = append(failed, err)
		}
	}
	if answered || len(failed) > 0 {
		return latest, errors.Join(failed...)
	}
	return providers.Activity{}, none
}

// askAbout asks the provider, or a source beside it under the id that the source
// knows the sandbox by.
func askAbout[T any](ctx context.Context, m *member, v voice, s sandbox.Sandbox, what string, ask func(context.Context, string) (T, error)) (T, error) {
	return callBy(ctx, m, v.breaker, what+" "+s.ID, func(ctx context.Context) (T, error) {
		id := s.ID
		if linker, ok := providers.As[providers.Linker](v.of); ok {
			var err error
			if id, err = linker.Link(ctx, s); err != nil {
				var none T
				return none, err
			}
		}
		return ask(ctx, id)
	})
}

// Records reads what a profile's control planes say should exist: its own, and
// those of the sources attached to it. An error is one of them failing.
func (f *Fleet) Records(ctx context.Context, profile string) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		m, err := f.member(profile)
		if err != nil {
			yield(providers.Record{}, err)
			return
		}
		none := true
		for _, v := range m.all() {
			reader, ok := providers.As[providers.Recorder](v.of)
			if !ok {
				continue
			}
			none = false
			for r, err := range watched(ctx, m, "records", reader.Records) {
				if !yield(r, err) {
					return
				}
			}
		}
		if none {
			yield(providers.Record{}, providers.Unsupported(m.Provider, "records", f.providers()))
		}
	}
}

// HasRecords says that a profile's own control plane, or a source attached to it,
// has records of what should exist.
func (f *Fleet) HasRecords(profile string) bool {
	m, err := f.member(profile)
	return err == nil && slices.ContainsFunc(m.all(), func(v voice) bool { _, ok := providers.As[providers.Recorder](v.of); return ok })
}

// RemovesRecords says that a profile's control plane can be asked to drop its
// record of a sandbox that is gone.
func (f *Fleet) RemovesRecords(profile string) bool {
	_, _, err := able[providers.RecordRemover](f, profile, "records")
	return err == nil
}

// RemoveRecord asks a profile's control plane to drop its record of a sandbox that
// is gone, once.
func (f *Fleet) RemoveRecord(ctx context.Context, ref sandbox.Ref) error {
	m, remover, err := able[providers.RecordRemover](f, ref.Provider, "records")
	if err != nil {
		return err
	}
	_, err = call(ctx, m, "remove the record of "+ref.ID, func(ctx context.Context) (struct{}, error) {
		f.tell(ref, "remove record", "")
		return struct{}{}, remover.RemoveRecord(ctx, ref.ID)
	})
	return err
}

// voice is one that may tell of a member's sandboxes. Each has a breaker of its
// own: a control plane that is down says nothing about the provider beside it.
type voice struct {
	of      providers.Named
	breaker *policy.Breaker
}

// all is the provider and what is attached to it.
func (m *member) all() []voice {
	return append([]voice{{m.Provider, m.breaker}}, m.beside...)
}

// events merges what the provider and its sources tell. What fails is an error
// beside the rest; who does not know the sandbox says nothing about it, unless
// nobody knows it.
func (m *member) events(ctx context.Context, s sandbox.Sandbox) ([]sandbox.Event, error) {
	var all []sandbox.Event
	var unknown, failed []error
	known := false
	for _, v := range m.all() {
		reader, ok := providers.As[providers.EventReader](v.of)
		if !ok {
			continue
		}
		got, err := askAbout(ctx, m, v, s, "events", reader.Events)
		switch {
		case err == nil:
			known = true
		case fault.KindOf(err) == fault.KindNotFound:
			unknown = append(unknown, err)
		default:
			failed = append(failed, err)
		}
		all = append(all, got...)
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	if !known && len(all) == 0 && len(failed) == 0 {
		return nil, errors.Join(unknown...)
	}
	return all, errors.Join(failed...)
}
