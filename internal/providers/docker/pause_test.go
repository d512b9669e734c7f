package docker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/triage"
)

// TestAPauseIsNoSilence: a program that was paused has been silent since its container goes on, as far as the engine remembers.
func TestAPauseIsNoSilence(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"wrote before": "echo one; touch ~/ready; exec sleep 600", "wrote nothing": "touch ~/ready; exec sleep 600"} {
		for _, forgets := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := dockertest.New(t, dockertest.Options{Forgets: forgets})
				c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
				made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", script}})
				require.NoError(t, err)
				_, err = c.Exec(t.Context(), made.ID, providers.Command{Args: []string{"sh", "-c", `while [ ! -e ~/ready ]; do sleep 0.01; done; touch -d "10 minutes ago" ~/.sbx/runs/main/out.0 ~/.sbx/runs/main/err.0`}})
				require.NoError(t, err)
				f.StartedBefore(made.ID, 10*time.Minute)
				assert.Greater(t, silenceOf(t, c, made.ID), 9*time.Minute)
				f.PauseAndGoOn(made.ID)
				if forgets {
					assert.Greater(t, silenceOf(t, c, made.ID), 9*time.Minute, "absence of an event proves nothing")
				} else {
					assert.Less(t, silenceOf(t, c, made.ID), time.Minute)
				}
			})
		}
	}
}

// silenceOf is how long a look finds a program silent by its log.
func silenceOf(t *testing.T, c providers.LogReader, id string) time.Duration {
	t.Helper()
	var lines []sandbox.LogLine
	for line, err := range c.Logs(providers.Look(t.Context()), id, providers.LogQuery{}) {
		require.NoError(t, err)
		lines = append(lines, line)
	}
	found := triage.ReadLines(triage.NewMatcher(), lines)
	if found.Lines == 0 {
		return 10 * time.Minute // since its start
	}
	return time.Since(found.Last)
}
