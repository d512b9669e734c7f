package providers_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func TestWhatCouldNotBeOpenedSaysWhy(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{
		"a fault": fault.New(fault.KindAuth, "no key").WithHint("set KEY"), "any": errors.New("no key"),
	} {
		u := providers.NewUnopened(providers.Profile{Name: "prod", Type: "cloud"}, why)
		kind := fault.KindOf(why)
		_, err := u.Get(t.Context(), "abc")
		require.EqualError(t, err, "prod: no key", name)
		assert.Equal(t, kind, fault.KindOf(err))
		assert.Equal(t, kind, fault.KindOf(u.Terminate(t.Context(), "abc", providers.TerminateOptions{})))
		rows := 0
		for _, err := range u.List(t.Context(), providers.Query{}) {
			rows++
			assert.Equal(t, kind, fault.KindOf(err), "an empty list would be a lie")
		}
		assert.Equal(t, 1, rows)
		assert.Equal(t, kind, fault.KindOf(providers.Unsupported(u, "logs", nil)), "what it could do is not known")
		assert.Contains(t, providers.WhyNot(u, "logs"), "could not be opened: prod: no key")
		require.Len(t, u.Check(t.Context()), 1)
		assert.Equal(t, sandbox.False, u.Check(t.Context())[0].Verdict)
	}
}
