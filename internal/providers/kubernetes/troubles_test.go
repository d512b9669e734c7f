package kubernetes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
)

// TestTroublesAreSaid: what a kubelet reports of a pod that has not ended, whoever owns it.
func TestTroublesAreSaid(t *testing.T) {
	t.Parallel()
	type seed = kubernetestest.Seed
	unready := []any{met("Ready", "False", "DependenciesNotReady")}
	for name, tc := range map[string]struct {
		seed  seed
		state sandbox.State
		cause sandbox.Cause
		say   string
	}{
		"killed for memory, runs again": {seed{RestartPolicy: "Always", Restarts: 41, OOM: true, Ago: 25 * time.Second}, sandbox.StateRunning, sandbox.CauseOOM, "OOM), and was started again (restarts: 41)"},
		"waits for its next start":      {seed{RestartPolicy: "Always", Restarts: 57, LastCode: 1, Waiting: "CrashLoopBackOff", Ago: 2 * time.Minute}, sandbox.StateRunning, sandbox.CauseRestarts, "ended with 1, and was started again (restarts: 57); it waits: CrashLoopBackOff"},
		"the same of a sandbox":         {seed{Kind: "sandbox", RestartPolicy: "Always", Restarts: 57, LastCode: 1, Waiting: "CrashLoopBackOff", Conditions: unready}, sandbox.StateRunning, sandbox.CauseRestarts, "restarts: 57"},
		"init container":                {seed{Phase: "Pending", Waiting: "PodInitializing", Init: "CrashLoopBackOff", LastCode: 2}, sandbox.StateProvisioning, sandbox.CauseRestarts, "init container setup ended with 2"},
		"init container of a sandbox":   {seed{Kind: "sandbox", Phase: "Pending", Waiting: "PodInitializing", Init: "CrashLoopBackOff", LastCode: 2, Conditions: unready}, sandbox.StateProvisioning, sandbox.CauseRestarts, "init container setup ended with 2"},
		"beside a sidecar":              {seed{Sidecar: true, MainEnded: true, Code: 3}, sandbox.StateRunning, sandbox.CauseMainEnded, "its main container main has ended with 3; beside it runs proxy"},
		"sandbox beside a sidecar":      {seed{Kind: "sandbox", Sidecar: true, MainEnded: true, Code: 3, Conditions: unready}, sandbox.StateRunning, sandbox.CauseMainEnded, "has ended with 3"},
		"long ago":                      {seed{RestartPolicy: "Always", Restarts: 2, LastCode: 1, Ago: 3 * time.Hour}, sandbox.StateRunning, "", ""},
		"nothing":                       {seed{}, sandbox.StateRunning, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(tc.seed)
			c := dialed(t, f)
			defer c.Close()
			got, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, tc.state, got.State, got.RawState)
			rows := list(t, c)
			require.Len(t, rows, 1)
			if tc.cause == "" {
				assert.Empty(t, got.Troubles)
				assert.Empty(t, rows[0].Troubles)
				return
			}
			require.Len(t, got.Troubles, 1)
			require.Len(t, rows[0].Troubles, 1, "the list shows it as well")
			assert.Equal(t, tc.cause, got.Troubles[0].Cause)
			assert.Equal(t, sandbox.Probable, got.Troubles[0].Confidence)
			assert.Contains(t, got.Troubles[0].Say, tc.say)
			assert.NotEmpty(t, got.Troubles[0].Evidence)
		})
	}
}

// TestPartsOfALog: an earlier run, and another container.
func TestPartsOfALog(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	again := f.Add(kubernetestest.Seed{RestartPolicy: "Always", Restarts: 1, Sidecar: true, Ago: time.Minute})
	once := f.Add(kubernetestest.Seed{Sidecar: true})
	c := dialed(t, f)
	defer c.Close()
	for name, tc := range map[string]struct {
		id   string
		q    providers.LogQuery
		want string
		kind fault.Kind
	}{
		"previous":             {again, providers.LogQuery{Previous: true}, "the last words of an earlier run", fault.KindNone},
		"no previous":          {once, providers.LogQuery{Previous: true}, "", fault.KindNotFound},
		"container":            {once, providers.LogQuery{Container: "proxy"}, "the words of the sidecar", fault.KindNone},
		"container of another": {once, providers.LogQuery{Container: "other"}, "", fault.KindUsage},
	} {
		var got string
		var failed error
		for line, err := range c.Logs(t.Context(), tc.id, tc.q) {
			got, failed = got+line.Text, errors.Join(failed, err)
		}
		assert.Equal(t, tc.want, got, name)
		assert.Equal(t, tc.kind, fault.KindOf(failed), "%s: %v", name, failed)
	}
}
