package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
)

func met(kind, status, reason string) any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "lastTransitionTime": "2026-08-22T10:00:00Z"}
}

func TestStates(t *testing.T) {
	t.Parallel()
	type seed = kubernetestest.Seed
	for name, tc := range map[string]struct {
		seed  seed
		state sandbox.State
		raw   string
	}{
		"pod":                           {seed{}, sandbox.StateRunning, "Running"},
		"pod that waits for its image":  {seed{Phase: "Pending", Waiting: "ImagePullBackOff"}, sandbox.StateProvisioning, "Pending: ImagePullBackOff"},
		"pod that has ended":            {seed{Phase: "Succeeded"}, sandbox.StateTerminated, "Succeeded"},
		"evicted pod":                   {seed{Phase: "Failed", Reason: "Evicted", Code: 137}, sandbox.StateFailed, "Failed: Evicted"},
		"phase that nobody knows":       {seed{Phase: "Frozen"}, sandbox.StateUnknown, "Frozen"},
		"sidecar beside an ended main":  {seed{Sidecar: true, MainEnded: true, OOM: true, Code: 137}, sandbox.StateRunning, "Running: main container OOMKilled"},
		"job":                           {seed{Kind: "job"}, sandbox.StateRunning, "Running"},
		"job that is complete":          {seed{Kind: "job", Phase: "Succeeded"}, sandbox.StateTerminated, "Complete"},
		"job whose end is decided":      {seed{Kind: "job", Conditions: []any{met("FailureTarget", "True", "DeadlineExceeded")}}, sandbox.StateTerminating, "FailureTarget: DeadlineExceeded"},
		"job that has failed":           {seed{Kind: "job", NoPod: true, Conditions: []any{met("Failed", "True", "DeadlineExceeded")}}, sandbox.StateFailed, "Failed: DeadlineExceeded"},
		"sandbox":                       {seed{Kind: "sandbox"}, sandbox.StateRunning, "Ready"},
		"sandbox without a condition":   {seed{Kind: "sandbox", NoPod: true, Conditions: []any{}}, sandbox.StateProvisioning, "no condition"},
		"sandbox that is not ready":     {seed{Kind: "sandbox", NoPod: true, Conditions: []any{met("Ready", "False", "DependenciesNotReady")}}, sandbox.StateProvisioning, "DependenciesNotReady"},
		"ready without a pod":           {seed{Kind: "sandbox", NoPod: true, Conditions: []any{met("Ready", "True", "DependenciesReady")}}, sandbox.StateUnknown, "Ready, but it has no pod"},
		"ready, and evicted":            {seed{Kind: "sandbox", Phase: "Failed", Reason: "Evicted", Code: 137, Conditions: []any{met("Ready", "True", "DependenciesReady")}}, sandbox.StateFailed, "Ready, but its pod: Failed: Evicted"},
		"ready, and pending":            {seed{Kind: "sandbox", Phase: "Pending", Waiting: "ErrImagePull", Conditions: []any{met("Ready", "True", "DependenciesReady")}}, sandbox.StateProvisioning, "Ready, but its pod: Pending: ErrImagePull"},
		"pod whose init fails":          {seed{Phase: "Pending", Waiting: "PodInitializing", Init: "CrashLoopBackOff"}, sandbox.StateProvisioning, "Pending: init container setup CrashLoopBackOff"},
		"suspended sandbox":             {seed{Kind: "sandbox", NoPod: true, Suspended: true}, sandbox.StatePaused, "Suspended"},
		"sandbox that suspends":         {seed{Kind: "sandbox", Suspended: true}, sandbox.StateRunning, "Suspending"},
		"sandbox whose pod has ended":   {seed{Kind: "sandbox", Phase: "Succeeded"}, sandbox.StateTerminated, "Finished: PodSucceeded"},
		"sandbox whose pod has failed":  {seed{Kind: "sandbox", Phase: "Failed", Code: 3}, sandbox.StateFailed, "Finished: PodFailed"},
		"expired sandbox":               {seed{Kind: "sandbox", NoPod: true, Conditions: []any{met("Ready", "False", "SandboxExpired")}}, sandbox.StateTerminated, "SandboxExpired"},
		"sandbox with two pods":         {seed{Kind: "sandbox", Conditions: []any{met("Ready", "False", "MultiplePods")}}, sandbox.StateUnknown, "MultiplePods"},
		"sandbox of a failed reconcile": {seed{Kind: "sandbox", Conditions: []any{met("Ready", "False", "ReconcilerError")}}, sandbox.StateUnknown, "ReconcilerError"},
		"claim without a condition":     {seed{Kind: "claim", Conditions: []any{}}, sandbox.StateProvisioning, "no condition"},
		"claim that waits":              {seed{Kind: "claim"}, sandbox.StateProvisioning, "SandboxMissing"},
		"claim of no pool":              {seed{Kind: "claim", Conditions: []any{met("Ready", "False", "WarmPoolNotFound")}}, sandbox.StateProvisioning, "WarmPoolNotFound"},
		"claim of no template":          {seed{Kind: "claim", Conditions: []any{met("Ready", "False", "TemplateNotFound")}}, sandbox.StateProvisioning, "TemplateNotFound"},
		"claim that is rejected":        {seed{Kind: "claim", Conditions: []any{met("Ready", "False", "InvalidMetadata")}}, sandbox.StateFailed, "InvalidMetadata"},
		"expired claim":                 {seed{Kind: "claim", Conditions: []any{met("Ready", "False", "ClaimExpired")}}, sandbox.StateTerminated, "ClaimExpired"},
		"claim of a failed reconcile":   {seed{Kind: "claim", Conditions: []any{met("Ready", "False", "ReconcilerError")}}, sandbox.StateUnknown, "ReconcilerError"},
		"claim of a hidden sandbox":     {seed{Kind: "claim", Sandbox: "elsewhere", Conditions: []any{met("Ready", "True", "DependenciesReady")}}, sandbox.StateRunning, "Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(tc.seed)
			c := dialed(t, f)
			defer c.Close()
			got, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, id, got.ID)
			assert.Equal(t, tc.state, got.State)
			assert.Equal(t, tc.raw, got.RawState)
			rows := list(t, c)
			require.Len(t, rows, 1, "an owned pod is part of its owner")
			assert.Equal(t, got, rows[0])
		})
	}
}

func list(t *testing.T, p providers.Provider) []sandbox.Sandbox {
	t.Helper()
	var all []sandbox.Sandbox
	for row, err := range p.List(t.Context(), providers.Query{}) {
		require.NoError(t, err)
		all = append(all, row)
	}
	return all
}

func TestExits(t *testing.T) {
	t.Parallel()
	type seed = kubernetestest.Seed
	for name, tc := range map[string]struct {
		seed  seed
		class sandbox.Class
		cause sandbox.Cause
	}{
		"code":                        {seed{Phase: "Failed", Code: 3}, sandbox.ClassAgentError, sandbox.CauseUnknown},
		"memory":                      {seed{Phase: "Failed", Code: 137, OOM: true}, sandbox.ClassOOM, sandbox.CauseOOM},
		"memory, beside a sidecar":    {seed{Sidecar: true, MainEnded: true, Code: 137, OOM: true}, sandbox.ClassOOM, sandbox.CauseOOM},
		"memory, of a sbx":            {seed{Phase: "Failed", Code: 137, OOM: true, Annotations: map[string]string{sandbox.LabelRun: "main"}}, sandbox.ClassOOM, sandbox.CauseOOM},
		"kill of nobody knows":        {seed{Phase: "Failed", Code: 137}, sandbox.ClassKilledUnknown, sandbox.CauseUnknown},
		"eviction":                    {seed{Phase: "Failed", Code: 137, Reason: "Evicted"}, sandbox.ClassInfra, sandbox.CauseUnknown},
		"time limit of the pod":       {seed{Phase: "Failed", Code: 137, Reason: "DeadlineExceeded"}, sandbox.ClassTimeout, sandbox.CauseTimeout},
		"time limit of a job":         {seed{Kind: "job", NoPod: true, Conditions: []any{met("Failed", "True", "DeadlineExceeded")}}, sandbox.ClassTimeout, sandbox.CauseTimeout},
		"job whose pod has a code":    {seed{Kind: "job", Phase: "Failed", Code: 3}, sandbox.ClassAgentError, sandbox.CauseUnknown},
		"sandbox whose pod has ended": {seed{Kind: "sandbox", Phase: "Succeeded"}, sandbox.ClassOK, sandbox.CauseNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(tc.seed)
			c := dialed(t, f)
			defer c.Close()
			got, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			require.NotNil(t, got.Exit)
			assert.Equal(t, tc.class, got.Exit.Class)
			assert.Equal(t, tc.cause, got.Exit.Cause)
			exit, err := c.Exit(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, got.Exit.Class, exit.Class)
		})
	}
}

// A list of old moments, and one whose pages are of several, are read again from the first page.
func TestExpiredPages(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    kubernetestest.Options
		kind fault.Kind
	}{
		"once":        {kubernetestest.Options{Expired: 1}, fault.KindNone},
		"twice":       {kubernetestest.Options{Expired: 2}, fault.KindNone},
		"three times": {kubernetestest.Options{Expired: 3}, fault.KindUnavailable},
		"moving":      {kubernetestest.Options{Moves: true}, fault.KindUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.PageSize, tc.o.NoCRD = 2, true
			f := kubernetestest.New(t, tc.o)
			for range 5 {
				f.Add(kubernetestest.Seed{})
			}
			c := dialed(t, f)
			defer c.Close()
			ids := map[string]int{}
			var failed error
			for row, err := range c.List(t.Context(), providers.Query{}) {
				if err != nil {
					failed = err
					continue
				}
				ids[row.ID]++
			}
			assert.Equal(t, tc.kind, fault.KindOf(failed), "%v", failed)
			for id, n := range ids {
				assert.Equal(t, 1, n, "%s comes twice", id)
			}
			if failed == nil {
				assert.Len(t, ids, 5)
			}
			for _, call := range f.Calls("") {
				assert.NotContains(t, call.URL, "continue=inconsistent", "the token of a refusal hides changes")
				assert.NotContains(t, call.URL, "resourceVersion=")
			}
		})
	}
}

func TestListsOnlyWhatTheProfileHas(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	pool := f.Add(kubernetestest.Seed{Kind: "pool"})
	f.Add(kubernetestest.Seed{Kind: "sandbox", Name: "stock", Owner: pool})
	f.Add(kubernetestest.Seed{Kind: "sandbox", Name: "mine", Labels: map[string]string{"team": "a"}})
	f.Add(kubernetestest.Seed{Name: "other", Labels: map[string]string{"team": "b"}})
	settings := kubernetestest.Settings(t, base)
	for setting, want := range map[string][]string{"": {"other", "mine"}, "label team=a": {"mine"}, "label team": {"other", "mine"}, "kinds pod": {"other"}, "kinds sandbox,job": {"mine"}} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			own := map[string]string{"kubeconfig": settings["kubeconfig"]}
			if setting != "" {
				var name, value string
				name, value, _ = cutSpace(setting)
				own[name] = value
			}
			c := open(t, own, netOf(f))
			defer c.Close()
			var names []string
			for _, row := range list(t, c) {
				names = append(names, row.Name)
			}
			assert.ElementsMatch(t, want, names)
		})
	}
}

func TestTimesOfAList(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	f.Add(kubernetestest.Seed{Age: time.Hour})
	c := dialed(t, f)
	defer c.Close()
	age, source := list(t, c)[0].Age(time.Now())
	assert.InDelta(t, time.Hour, age, float64(2*time.Second))
	assert.Equal(t, sandbox.AgeCreatedAt, source)
}
