package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// TestAPartOfALogThatNobodyHasIsUnsupported: it is never the log of something else.
func TestAPartOfALogThatNobodyHasIsUnsupported(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	f := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{})
	for _, q := range []providers.LogQuery{{Previous: true}, {Container: "proxy"}} {
		n := 0
		for _, err := range f.Logs(t.Context(), sandbox.Ref{Provider: p.Name(), ID: "x"}, q) {
			assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "%v", err)
			n++
		}
		assert.Equal(t, 1, n)
	}
}
