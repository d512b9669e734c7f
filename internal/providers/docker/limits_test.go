package docker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/dockertest"
)

// TestDroppedLimitsAreRefused: Podman without root may have no control groups, drops limits and says nothing.
func TestDroppedLimitsAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    dockertest.Options
		kind fault.Kind
	}{
		"podman with groups":    {dockertest.Options{Podman: true, API: "1.41"}, fault.KindNone},
		"podman without groups": {dockertest.Options{Podman: true, API: "1.41", NoGroups: true}, fault.KindRefused},
		"an engine that drops":  {dockertest.Options{NoGroups: true}, fault.KindRefused},
		"docker":                {dockertest.Options{}, fault.KindNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dockertest.New(t, tc.o)
			c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
			for _, spec := range []sandbox.Spec{{MemoryBytes: 64 << 20}, {CPU: 0.5}, {PIDs: 50}} {
				spec.Command, spec.RequireHardLimit = []string{"sleep", "600"}, true
				made, err := c.Create(t.Context(), spec)
				assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
				if err != nil {
					assert.Zero(t, f.Running(), "it is undone")
					continue
				}
				_, err = c.Get(t.Context(), made.ID)
				require.NoError(t, err)
			}
		})
	}
}

// TestFiguresOfTheHostAreNone: without a control group the memory is that of the whole machine.
func TestFiguresOfTheHostAreNone(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]bool{"with groups": false, "without": true} {
		f := dockertest.New(t, dockertest.Options{Podman: true, API: "1.41", NoGroups: without, Virtual: true})
		id := f.Add(dockertest.Seed{})
		c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
		for range 2 {
			u, err := c.Usage(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, without, u.MemoryBytes == nil, name)
			assert.Equal(t, without, u.Tasks == nil, name)
		}
		assert.Len(t, f.Calls("GET /v4.3.1/libpod/info"), 1, "it is asked once")
	}
}
