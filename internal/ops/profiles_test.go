package ops

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/providers"
)

func TestADrillIsStagedWhereSandboxesAreProcesses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		facts providers.Facts
		want  string
	}{
		"containers elsewhere":       {providers.Facts{EndKeeps: providers.EndKeepsNothing}, ""},
		"containers of this machine": {providers.Facts{HostBound: true}, ""},
		"processes of this machine":  {providers.Facts{HostBound: true, HostProcesses: true}, "box"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := hostProfile(&config.Config{Profiles: []config.Profile{{Profile: providers.Profile{Name: "box"}, Facts: tc.facts}}})
			assert.Equal(t, tc.want, got)
			if tc.want == "" {
				assert.Equal(t, fault.KindUnsupported, fault.KindOf(err))
			}
		})
	}
}
