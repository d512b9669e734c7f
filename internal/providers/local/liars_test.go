//go:build unix

package local_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local"
	"sbx/internal/providers/providertest"
	"sbx/internal/sandbox"
)

// deaf says that it ends and does nothing.
type deaf struct{ *local.Client }

func (deaf) Terminate(context.Context, string, providers.TerminateOptions) error { return nil }

// shortsighted leaves out the first row of every list.
type shortsighted struct{ *local.Client }

func (l shortsighted) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		first := true
		for s, err := range l.Client.List(ctx, q) {
			if first && err == nil {
				first = false
				continue
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// rash takes what is not there for what has ended.
type rash struct{ *local.Client }

func (l rash) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	s, err := l.Client.Get(ctx, id)
	if fault.KindOf(err) == fault.KindNotFound {
		return s, fault.New(fault.KindGone, "it has ended").At(l.Name(), "get "+id)
	}
	return s, err
}

func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lie   func(*local.Client) providers.Provider
		check string
	}{
		"says yes and does nothing": {func(c *local.Client) providers.Provider { return deaf{c} }, "terminate_ends"},
		"leaves out a row":          {func(c *local.Client) providers.Provider { return shortsighted{c} }, "list_contains_what_was_created"},
		"unknown is gone":           {func(c *local.Client) providers.Provider { return rash{c} }, "get_of_unknown_is_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := providertest.Config{Limit: 2 * time.Second, New: func(pt providertest.T) providers.Provider {
				c, ok := openFor(pt).(*local.Client)
				require.True(pt, ok)
				return tc.lie(c)
			}}
			for _, check := range providertest.Checks() {
				if check.Name == tc.check {
					assert.True(t, providertest.Attempt(t.Context(), config, check).Failed)
					return
				}
			}
			assert.Fail(t, "no check "+tc.check)
		})
	}
}
