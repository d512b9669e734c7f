package kubernetes_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/kubernetestest"
)

// TestAMissingNamespaceIsAnError: the API lists nothing of it, as of an empty one.
func TestAMissingNamespaceIsAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    kubernetestest.Options
		kind fault.Kind
	}{
		"empty":             {kubernetestest.Options{}, fault.KindNone},
		"missing":           {kubernetestest.Options{NoSpace: true}, fault.KindUsage},
		"without the right": {kubernetestest.Options{NoSpace: true, Refuse: []string{"get namespaces"}}, fault.KindNone},
	} {
		f := kubernetestest.New(t, tc.o)
		c := dialed(t, f)
		var failed error
		for _, err := range c.List(t.Context(), providers.Query{}) {
			failed = errors.Join(failed, err)
		}
		c.Close()
		assert.Equal(t, tc.kind, fault.KindOf(failed), "%s: %v", name, failed)
	}
}
