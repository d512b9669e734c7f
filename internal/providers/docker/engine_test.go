package docker_test

import (
	"context"
	"crypto/rand"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/docker"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// EngineVariable names the address of a real engine for the tests that need one, and its image
// `sbxtest:1`; the stage `docker` of .ci/run starts both.
const EngineVariable = "SBX_TEST_DOCKER"

// image is the image of the tests; it has the programs of busybox.
const image = "sbxtest:1"

// realEngine is the address of the engine; without one the test is skipped.
func realEngine(tb testing.TB) string {
	tb.Helper()
	host := os.Getenv(EngineVariable)
	if host == "" {
		tb.Skipf("%s is not set: `.ci/run docker` starts an engine", EngineVariable)
	}
	return host
}

func open(t wiretest.T, settings map[string]string, n httpx.Net) *docker.Client {
	settings["image"], settings["network"] = image, "none"
	p, err := docker.Type().Open(context.Background(), providers.Profile{Name: "prod", Type: docker.TypeName, Settings: settings}, providers.Deps{Now: time.Now, Net: n})
	require.NoError(t, err)
	c, ok := p.(*docker.Client)
	require.True(t, ok)
	return c
}

// TestConformanceOfTheEngine plays the suite against a real engine.
func TestConformanceOfTheEngine(t *testing.T) {
	t.Parallel()
	host := realEngine(t)
	providertest.Run(t, providertest.Config{
		New: func(t providertest.T) providers.Provider {
			c := open(t, map[string]string{"host": host, "label": "sbx-view=" + rand.Text()}, httpx.Net{}) // the engine is one for all checks
			t.Cleanup(c.Close)
			return c
		},
		Many: 3, Limit: time.Minute,
	})
}
