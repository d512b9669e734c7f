package fleet

import (
	"context"
	"errors"
	"iter"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Exit reads how the program that create started has ended, where the provider keeps that
// inside the sandbox; nil while it runs. fault.KindNotFound where sbx started none.
func (f *Fleet) Exit(ctx context.Context, ref sandbox.Ref) (*sandbox.Exit, error) {
	return callAbility(ctx, f, ref, "exit", providers.ExitReader.Exit)
}

// ProviderQuota is the list of limits of one profile's account.
type ProviderQuota struct {
	Provider string
	Quotas   []providers.Quota
	Err      error
}

// Quotas asks every provider with quotas at once and returns them in the order of the
// fleet; the limit of the configuration (Member.MaxSandboxes) is one more quota. A profile
// with neither is left out.
func (f *Fleet) Quotas(ctx context.Context) []ProviderQuota {
	all := inParallel(f.members, func(m *member) (q ProviderQuota) {
		reader, hasQuotas := providers.As[providers.QuotaReader](m.Provider)
		if !hasQuotas && m.MaxSandboxes == 0 {
			return q
		}
		q.Provider = m.Provider.Name()
		if hasQuotas {
			q.Quotas, q.Err = callWithTimeout(ctx, m, "quota", reader.Quota)
		}
		if m.MaxSandboxes > 0 {
			q.addLimit(m.limitQuota(ctx))
		}
		return q
	})
	return slices.DeleteFunc(all, func(q ProviderQuota) bool { return q.Provider == "" })
}

// addLimit adds the limit of the configuration, which also replaces a quota that the
// provider cannot report.
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

// Activity reads the latest sign of life of a sandbox from the provider and every source
// attached to it. An error of one of them is returned beside the result of the others:
// while a source that may have seen work fails, no sandbox is known to be silent.
// fault.KindNotFound or KindUnsupported: none of them knows it.
func (f *Fleet) Activity(ctx context.Context, s sandbox.Sandbox) (providers.Activity, error) {
	m, err := f.findMember(s.Provider)
	if err != nil {
		return providers.Activity{}, err
	}
	var latest providers.Activity
	var failed []error
	answered := false
	none := providers.Unsupported(m.Provider, "activity", f.allProviders())
	for v, reader := range withAbility[providers.ActivityReader](m.sources()) {
		got, err := callSource(ctx, m, v, s, "activity", reader.Activity)
		switch kind := fault.KindOf(err); kind {
		case fault.KindNone:
			if answered {
				got = latest.Later(got)
			}
			answered, latest = true, got
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

// callSource calls the provider, or a source under the id by which the source knows the
// sandbox.
func callSource[T any](ctx context.Context, m *member, v source, s sandbox.Sandbox, what string, ask func(context.Context, string) (T, error)) (T, error) {
	return callWithBreaker(ctx, m, v.breaker, what+" "+s.ID, func(ctx context.Context) (T, error) {
		id := s.ID
		if linker, ok := providers.As[providers.Linker](v.named); ok {
			var err error
			if id, err = linker.Link(ctx, s); err != nil {
				var none T
				return none, err
			}
		}
		return ask(ctx, id)
	})
}

// Records reads what a profile's control planes say should exist: the provider's own and
// the sources attached to it. An error is the failure of one of them.
func (f *Fleet) Records(ctx context.Context, profile string) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		m, err := f.findMember(profile)
		if err != nil {
			yield(providers.Record{}, err)
			return
		}
		none := true
		for _, reader := range withAbility[providers.Recorder](m.sources()) {
			none = false
			for r, err := range streamWithTimeout(ctx, m, "records", reader.Records) {
				if !yield(r, err) {
					return
				}
			}
		}
		if none {
			yield(providers.Record{}, providers.Unsupported(m.Provider, "records", f.allProviders()))
		}
	}
}

// HasRecords reports whether a profile's control plane, or a source attached to it, has
// records of what should exist.
func (f *Fleet) HasRecords(profile string) bool {
	m, err := f.findMember(profile)
	return err == nil && anyHasAbility[providers.Recorder](m.sources())
}

// RemovesRecords reports whether a profile's control plane can delete its record of a
// sandbox that no longer exists.
func (f *Fleet) RemovesRecords(profile string) bool {
	_, _, err := requireAbility[providers.RecordRemover](f, profile, "records")
	return err == nil
}

// RemoveRecord asks a profile's control plane, once, to delete its record of a sandbox that
// no longer exists.
func (f *Fleet) RemoveRecord(ctx context.Context, ref sandbox.Ref) error {
	m, remover, err := requireAbility[providers.RecordRemover](f, ref.Provider, "records")
	if err != nil {
		return err
	}
	_, err = callInSlot(ctx, m, "remove the record of "+ref.ID, func(ctx context.Context) (struct{}, error) {
		f.recordEvent(ref, "remove record", "")
		return struct{}{}, remover.RemoveRecord(ctx, ref.ID)
	})
	return err
}

// source is a provider or a control plane attached to it. Each has a circuit breaker of its
// own: a failing control plane says nothing about the provider.
type source struct {
	named   providers.Named
	breaker *policy.Breaker
}

// sources is the provider followed by what is attached to it.
func (m *member) sources() []source {
	return append([]source{{m.Provider, m.breaker}}, m.attached...)
}

// mergeEvents merges the events of the provider and its sources. A failure is an error
// beside the other events; a source that does not know the sandbox adds nothing, unless
// none of them knows it.
func (m *member) mergeEvents(ctx context.Context, s sandbox.Sandbox) ([]sandbox.Event, error) {
	var all []sandbox.Event
	var answers sourceAnswers
	for v, reader := range withAbility[providers.EventReader](m.sources()) {
		got, err := callSource(ctx, m, v, s, "events", reader.Events)
		answers.add(err)
		all = append(all, got...)
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	answers.known = answers.known || len(all) > 0
	return all, answers.err()
}

// eachAgentEvent gives the events of the agent and of the life of a sandbox to add: of a source without agent
// events those of its record of the sandbox's life. Errors as of mergeEvents.
func (m *member) eachAgentEvent(ctx context.Context, s sandbox.Sandbox, page int, refused *RefusedSources, add func(providers.AgentEvent) bool) error {
	var answers sourceAnswers
	for _, v := range m.sources() {
		if read := agentEventReader(v, page, add); read != nil && !refused.leavesOut(v.named.Name()) {
			_, err := callSource(ctx, m, v, s, "events", read)
			if !refused.isKnown(v.named.Name(), err) {
				answers.add(err)
			}
		}
	}
	return answers.err()
}

// sourceAnswers are what several sources said of one sandbox.
type sourceAnswers struct {
	known           bool // to one of them or more
	unknown, failed []error
}

func (a *sourceAnswers) add(err error) {
	switch {
	case err == nil:
		a.known = true
	case fault.KindOf(err) == fault.KindNotFound:
		a.unknown = append(a.unknown, err)
	default:
		a.failed = append(a.failed, err)
	}
}

// err is what failed, or that none of them knows the sandbox.
func (a *sourceAnswers) err() error {
	if !a.known && len(a.failed) == 0 {
		return errors.Join(a.unknown...)
	}
	return errors.Join(a.failed...)
}

// agentEventReader reads the events of one source; nil = it has none.
func agentEventReader(v source, page int, add func(providers.AgentEvent) bool) func(ctx context.Context, id string) (struct{}, error) {
	if reader, ok := providers.As[providers.AgentEventReader](v.named); ok {
		return func(ctx context.Context, id string) (struct{}, error) {
			return struct{}{}, reader.AgentEvents(ctx, id, page, add)
		}
	}
	reader, ok := providers.As[providers.EventReader](v.named)
	if !ok {
		return nil
	}
	return func(ctx context.Context, id string) (struct{}, error) {
		events, err := reader.Events(ctx, id)
		for _, e := range slices.Backward(events) {
			add(providers.AgentEvent{Type: e.Event, Source: v.named.Name(), At: e.At, Detail: e.Detail})
		}
		return struct{}{}, err
	}
}
