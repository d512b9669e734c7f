package providertest

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func contextChecks() []Check {
	return []Check{
		{"canceled_calls_return_at_once", "", canceled},
		{"a_passed_deadline_is_a_timeout", "", deadline},
		{"list_ends_with_ctx", "", listEndsWithContext},
	}
}

// calls is every operation of the provider on one sandbox.
func (s *Subject) calls(id string) map[string]func(context.Context) error {
	all := s.reads(id)
	all["terminate"] = func(ctx context.Context) error {
		return s.P.Terminate(ctx, id, providers.TerminateOptions{})
	}
	if l, ok := providers.As[providers.Launcher](s.P); ok {
		all["create"] = func(ctx context.Context) error {
			_, err := l.Create(ctx, sandbox.Spec{Command: []string{"sleep", "600"}})
			return err
		}
	}
	if c, ok := providers.As[providers.Commander](s.P); ok {
		all["exec"] = func(ctx context.Context) error {
			_, err := c.Exec(ctx, id, providers.Command{Args: []string{"true"}})
			return err
		}
	}
	if v, ok := providers.As[providers.Verifier](s.P); ok { // no read: it is asked of what has ended alone
		all["verify"] = func(ctx context.Context) error { _, err := v.VerifyEnd(ctx, id, query(false)); return err }
	}
	return all
}

// reads is every operation that only looks.
func (s *Subject) reads(id string) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"list": func(ctx context.Context) error {
			var errs []error
			for _, err := range s.P.List(ctx, providers.Query{All: true}) {
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
		"get": func(ctx context.Context) error { _, err := s.P.Get(ctx, id); return err },
	}
	if r, ok := providers.As[providers.LogReader](s.P); ok {
		all["logs"] = func(ctx context.Context) error { _, err := logs(ctx, r, id, providers.LogQuery{}); return err }
	}
	if r, ok := providers.As[providers.UsageReader](s.P); ok {
		all["usage"] = func(ctx context.Context) error { _, err := r.Usage(ctx, id); return err }
	}
	if r, ok := providers.As[providers.Prober](s.P); ok {
		all["probe"] = func(ctx context.Context) error { _, err := r.Probe(ctx, id); return err }
	}
	if r, ok := providers.As[providers.EventReader](s.P); ok {
		all["events"] = func(ctx context.Context) error { _, err := r.Events(ctx, id); return err }
	}
	if r, ok := providers.As[providers.StatsReader](s.P); ok {
		all["stats"] = func(ctx context.Context) error { _, err := r.Stats(ctx); return err }
	}
	maps.Copy(all, s.control(id))
	return all
}

// each runs every call under ctx and expects the kind.
func (s *Subject) each(t T, ctx context.Context, want fault.Kind, calls map[string]func(context.Context) error) { //nolint:revive // a check's t comes first
	t.Helper()
	for name, call := range calls {
		var err error
		if !s.returns(func() { err = call(ctx) }) {
			assert.Failf(t, "deaf", "%s does not return when ctx has ended", name)
			continue
		}
		assert.Equal(t, want, fault.KindOf(err), "%s: %v", name, err)
	}
}

func canceled(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.each(t, ctx, fault.KindCanceled, s.calls(id))
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State, "a canceled call had an effect")
}

func deadline(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	s.each(t, ctx, fault.KindTimeout, s.reads(id))
}

// listEndsWithContext ends ctx between two items: the rest may come, as it may
// have been read already, or an error; a silent end would pass for the whole.
func listEndsWithContext(t T, s *Subject) {
	for range s.c.Many {
		s.start(t, sandbox.Spec{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	items, failed := 0, false
	assert.True(t, s.returns(func() {
		for _, err := range s.P.List(ctx, providers.Query{}) {
			if err != nil {
				failed = true
				assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
				break
			}
			items++
			cancel()
		}
	}), "list goes on after ctx has ended")
	assert.True(t, failed || items >= s.c.Many, "%d of %d listed, and no error", items, s.c.Many)
}
