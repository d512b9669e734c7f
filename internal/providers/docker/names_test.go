package docker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/testkit/dockertest"
)

// TestNames: the alias of a link is the name of another container, and a name may look like the beginning of an id.
func TestNames(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	linked, hex := f.Add(dockertest.Seed{Name: "web", Alias: "proxy/upstream", Age: time.Hour}), f.Add(dockertest.Seed{Name: "cafe"})
	c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
	names := map[string]string{}
	for row, err := range c.List(t.Context(), providers.Query{}) {
		require.NoError(t, err)
		names[row.ID] = row.Name
	}
	assert.Equal(t, map[string]string{linked: "web", hex: "cafe"}, names)
	got, err := c.Get(t.Context(), "cafe")
	require.NoError(t, err)
	assert.Equal(t, hex, got.ID)
	assert.True(t, c.TakesName("cafe"))
	assert.False(t, c.TakesName(hex))
	_, err = c.Get(t.Context(), linked[:12])
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	got, err = c.Get(t.Context(), linked)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now().Add(-time.Hour), got.StartedAt, time.Minute)
}
