package docker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/dockertest"
)

// TestTroublesAreSaid: what an engine reports of a container that runs, and of one that was never started.
func TestTroublesAreSaid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seed   dockertest.Seed
		cause  sandbox.Cause
		say    string
		listed bool // the row of the list shows it as well
	}{
		"killed for memory, runs again": {dockertest.Seed{Restart: "always", Restarts: 41, LastCode: 137, OOM: true, Ago: 25 * time.Second}, sandbox.CauseOOM, "OOM), and was started again (restarts: 41)", false},
		"fails, runs again":             {dockertest.Seed{Restart: "always", Restarts: 14, LastCode: 3, Ago: 25 * time.Second}, sandbox.CauseRestarts, "ended with 3, and was started again (restarts: 14)", false},
		"waits for its next start":      {dockertest.Seed{Restart: "always", State: "restarting", Restarts: 14, LastCode: 3, Ago: time.Second}, sandbox.CauseRestarts, "waits: restarting", true},
		"a child killed for memory":     {dockertest.Seed{OOM: true}, sandbox.CauseOOMChild, "one of its processes was killed", false},
		"failed long ago":               {dockertest.Seed{Restart: "always", Restarts: 2, LastCode: 3, Ago: 3 * time.Hour}, "", "", false},
		"unhealthy":                     {dockertest.Seed{Health: "unhealthy"}, sandbox.CauseUnhealthy, "its health check fails", true},
		"healthy":                       {dockertest.Seed{Health: "healthy"}, "", "", true},
		"its start failed":              {dockertest.Seed{State: "created", Error: "exec: agent: not found"}, sandbox.CauseProvisioning, "its start failed: exec: agent: not found", false},
		"nothing":                       {dockertest.Seed{}, "", "", true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := dockertest.New(t, dockertest.Options{Virtual: true})
			tc.seed.Age = 5 * time.Hour
			id := f.Add(tc.seed)
			c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
			got, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			rows := map[string]sandbox.Sandbox{"get": got}
			for row, err := range c.List(t.Context(), providers.Query{}) {
				require.NoError(t, err)
				if tc.listed {
					rows["list"] = row
				}
			}
			for from, row := range rows {
				if tc.cause == "" {
					assert.Empty(t, row.Troubles, from)
					continue
				}
				require.Len(t, row.Troubles, 1, from)
				assert.Equal(t, tc.cause, row.Troubles[0].Cause, from)
				assert.Equal(t, sandbox.Probable, row.Troubles[0].Confidence, from)
				assert.NotEmpty(t, row.Troubles[0].Evidence, from)
			}
			look := providers.Look(t.Context())
			_, err = c.Processes(look, id)
			require.NoError(t, err)
			read := len(f.Calls("GET /v1.47/containers/{id}/json"))
			seen, err := c.Troubles(look, id)
			require.NoError(t, err)
			assert.Len(t, seen, len(got.Troubles))
			assert.Len(t, f.Calls("GET /v1.47/containers/{id}/json"), read, "a look reads the record once")
			if tc.cause != "" {
				assert.Contains(t, got.Troubles[0].Say, tc.say)
			}
		})
	}
}

// TestHealthIsTheOwnersCheck: a shell that answers does not outweigh it, and a failed start is not waited for.
func TestHealthIsTheOwnersCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seed      dockertest.Seed
		verdict   sandbox.Verdict
		condition providers.Condition
	}{
		"unhealthy":        {dockertest.Seed{Health: "unhealthy", Command: []string{"sleep", "600"}}, sandbox.Unknown, providers.ConditionUnknown},
		"healthy":          {dockertest.Seed{Health: "healthy", Command: []string{"sleep", "600"}}, sandbox.True, providers.ConditionHealthy},
		"its start failed": {dockertest.Seed{State: "created", Error: "no such file"}, sandbox.False, providers.ConditionRecreate},
		"it was created":   {dockertest.Seed{State: "created"}, sandbox.Unknown, providers.ConditionWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dockertest.New(t, dockertest.Options{})
			id := f.Add(tc.seed)
			c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
			got, err := c.Probe(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, tc.verdict, got.Verdict, "%v", got.Evidence)
			assert.Equal(t, tc.condition, got.Condition)
		})
	}
}

// TestAHealthCheckIsNoWork: the engine runs it.
func TestAHealthCheckIsNoWork(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ check, run []string }{
		"by a shell": {[]string{"CMD-SHELL", "sleep 60"}, []string{"/bin/sh", "-c", "sleep 60"}},
		"by itself":  {[]string{"CMD", "sleep", "60"}, []string{"sleep", "60"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dockertest.New(t, dockertest.Options{})
			id := f.Add(dockertest.Seed{Check: tc.check, Command: []string{"sleep", "600"}})
			other := f.Add(dockertest.Seed{Command: []string{"sleep", "600"}})
			c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
			for _, id := range []string{id, other} {
				go func() { _, _ = c.Exec(t.Context(), id, providers.Command{Args: tc.run}) }()
			}
			require.Eventually(t, func() bool { return len(f.Processes(id)) == 1 && len(f.Processes(other)) == 1 }, 30*time.Second, 5*time.Millisecond)
			got, err := c.Processes(t.Context(), id)
			require.NoError(t, err)
			assert.Empty(t, got)
			got, err = c.Processes(t.Context(), other)
			require.NoError(t, err)
			assert.Len(t, got, 1)
		})
	}
}

// TestAFollowedLogGoesOnAcrossARestart: the end of one run is not that of the container.
func TestAFollowedLogGoesOnAcrossARestart(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{})
	id := f.Add(dockertest.Seed{Restart: "always", Command: []string{"sh", "-c", "echo begins; sleep 0.2; echo ends; exit 3"}})
	c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
	var got []string
	for line, err := range c.Logs(t.Context(), id, providers.LogQuery{Follow: true}) {
		require.NoError(t, err)
		if got = append(got, line.Text); len(got) == 6 {
			break
		}
	}
	assert.Equal(t, strings.Repeat("begins ends ", 3), strings.Join(got, " ")+" ")
}

// TestALogOfAnEarlierRun: the engine has the output of all runs in one log.
func TestALogOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "previous", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true})
		id := f.Add(dockertest.Seed{Restart: "always", Restarts: 1, Ago: time.Minute, Age: time.Hour})
		once := f.Add(dockertest.Seed{})
		f.Say(id, 1, time.Now().Add(-2*time.Minute), "earlier\n")
		f.Say(id, 1, time.Now(), "now\n")
		c := open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
		var got []string
		for line, err := range c.Logs(t.Context(), id, providers.LogQuery{Previous: true}) {
			require.NoError(t, err)
			got = append(got, line.Text)
		}
		assert.Equal(t, []string{"earlier"}, got)
		for _, err := range c.Logs(t.Context(), once, providers.LogQuery{Previous: true}) {
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
		}
	})
}
