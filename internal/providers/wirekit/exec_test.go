package wirekit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/wirekit"
)

// TestNoCommandRunsInWhatDoesNotRun: "the command may still run (... it is not running)" contradicts itself.
func TestNoCommandRunsInWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	limit := fault.New(fault.KindTimeout, "the limit was reached")
	for words, runs := range map[string]bool{
		"the node does not run it: container is not running":                          false,
		`unable to upgrade connection: container not found ("main")`:                  false,
		"HTTP 409: Container 4f1c is restarting, wait until the container is running": false,
		"HTTP 409: Container 4f1c is paused, unpause the container before exec":       true,
		"HTTP 503: service unavailable":                                               true,
		"the script that kills it exits with 1":                                       true,
	} {
		got := wirekit.Unended(limit, fault.New(fault.KindUnavailable, "%s", words), "prod", "web")
		assert.Equal(t, !runs, got == error(limit), words) //nolint:errorlint // that very error
		if runs {
			require.ErrorContains(t, got, "may still run")
		}
	}
	assert.Equal(t, error(limit), wirekit.Unended(limit, fault.New(fault.KindGone, "it is not there"), "prod", "web"))
}
