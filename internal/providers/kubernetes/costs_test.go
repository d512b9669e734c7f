package kubernetes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/providertest"
)

// TestATaskNeedsTwoCommands: each is a connection to the node and a line in the audit log.
func TestATaskNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := dialed(t, f)
	defer c.Close()
	counted := 0
	providertest.CheckTaskCommands(t, c, func(string) int {
		n := len(f.Calls(execRoute)) - counted
		counted += n
		return n
	})
}

// TestALookNeedsTwoCommands: what tells the exit tells whether a shell answers.
func TestALookNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := dialed(t, f)
	defer c.Close()
	providertest.CheckLookCommands(t, c, nil, func(string) int { return len(f.Calls(execRoute)) })
}

// counted are the requests of a task by their kind: watches, commands inside, and others.
type counted struct{ others, watches, commands int }

func countedOf(f *kubernetestest.Fake) (n counted) {
	for _, call := range f.Calls("") {
		switch {
		case call.Route == execRoute:
			n.commands++
		case strings.Contains(call.URL, "watch="):
			n.watches++
		default:
			n.others++
		}
	}
	return n
}

// playTask does what a task does: a create, its output to the end, looks at its exit, one at its usage, an end that
// nobody has read it for, and a search for copies.
func playTask(t *testing.T, c *kubernetes.Client) {
	t.Helper()
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; sleep 2; echo two"}, KeepAfterExit: true})
	require.NoError(t, err)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for _, err := range c.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
			assert.NoError(t, err)
		}
	}()
	_, err = c.Usage(t.Context(), made.ID)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		exit, err := c.Exit(t.Context(), made.ID)
		return err == nil && exit != nil
	}, time.Minute, 100*time.Millisecond)
	<-over
	many := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{})
	target := []sandbox.Sandbox{{Provider: "prod", ID: made.ID, State: sandbox.StateRunning}}
	for e := range many.Terminate(t.Context(), target, fleet.EndOptions{Delete: true, Recheck: fleet.Recheck{Skip: "a task's own sandbox"}}) {
		assert.Equal(t, sandbox.OutcomeVerified, e.Outcome, "%s", e.Reason)
	}
	copies, err := many.Copies(t.Context(), target[0].Ref(), made.Labels[sandbox.LabelNonce])
	require.NoError(t, err)
	assert.Empty(t, copies)
}

// TestRequestsOfATask: a watch of its pod says when it runs and while it ends; what has to be known for sure is read.
func TestRequestsOfATask(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    kubernetestest.Options
		most counted
	}{
		"a sandbox": {kubernetestest.Options{}, counted{10, 1, 2}}, // discovery, create, ready, usage, read, two deletes, gone, gone, pods
		"a job":     {kubernetestest.Options{NoCRD: true}, counted{9, 1, 2}},
		// Without the right to watch, what is not known from a watch is read.
		"no watch": {kubernetestest.Options{Refuse: []string{"watch pods"}}, counted{30, 1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.EndFor = 300 * time.Millisecond
			f := kubernetestest.New(t, tc.o)
			c := dialed(t, f)
			defer c.Close()
			playTask(t, c)
			n := countedOf(f)
			t.Logf("%+v", n)
			assert.LessOrEqual(t, n.others, tc.most.others)
			assert.LessOrEqual(t, n.watches, tc.most.watches)
			assert.LessOrEqual(t, n.commands, tc.most.commands)
			assert.Zero(t, f.Running())
		})
	}
}

// TestACopyOfACreateIsFound: a request that is repeated after the end of the first sandbox makes another one of its name.
func TestACopyOfACreateIsFound(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	c := dialed(t, f)
	defer c.Close()
	made, err := c.Create(t.Context(), sandbox.Spec{})
	require.NoError(t, err)
	nonce := made.Labels[sandbox.LabelNonce]
	copies, err := c.Copies(t.Context(), made.ID, nonce)
	require.NoError(t, err)
	assert.Empty(t, copies, "it is none itself")
	again := f.Replace(made.ID)
	f.Annotate(again, map[string]string{sandbox.LabelNonce: "another"})
	copies, err = c.Copies(t.Context(), made.ID, nonce)
	require.NoError(t, err)
	assert.Empty(t, copies, "of another create")
	f.Annotate(again, map[string]string{sandbox.LabelNonce: nonce})
	copies, err = c.Copies(t.Context(), made.ID, nonce)
	require.NoError(t, err)
	require.Len(t, copies, 1)
	assert.Equal(t, again, copies[0].ID)
	_, err = c.Copies(t.Context(), "no id", nonce)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

// TestAWatchThatBreaksCostsReads: nothing that a watch has shown outlives it, and no end is missed.
func TestAWatchThatBreaksCostsReads(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*kubernetestest.Fake){
		"cut":             func(f *kubernetestest.Fake) { f.CutWatches(false) },
		"a connection":    func(f *kubernetestest.Fake) { f.CutWatches(true) },
		"an odd event":    func(f *kubernetestest.Fake) { f.Inject("{\"type\":\"SURPRISE\",\"object\":{}}\n") },
		"it says nothing": func(f *kubernetestest.Fake) { f.Change(func(o *kubernetestest.Options) { o.SilentWatches = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{EndFor: 100 * time.Millisecond})
			c := dialed(t, f)
			defer c.Close()
			made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}})
			require.NoError(t, err)
			breaks(f)
			began := time.Now()
			many := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{})
			for e := range many.Terminate(t.Context(), []sandbox.Sandbox{{Provider: "prod", ID: made.ID, State: sandbox.StateRunning}}, fleet.EndOptions{Delete: true}) {
				assert.Equal(t, sandbox.OutcomeVerified, e.Outcome, "%s", e.Reason)
			}
			assert.Less(t, time.Since(began), 15*time.Second)
			assert.Zero(t, f.Running())
		})
	}
}

// TestAPodWithoutTheLabelIsFound: a webhook may drop labels, and then the watch shows none.
func TestAPodWithoutTheLabelIsFound(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{DropLabel: sandbox.LabelNonce})
	c := dialed(t, f)
	defer c.Close()
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}})
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, made.State)
	require.NoError(t, c.Terminate(t.Context(), made.ID, providers.TerminateOptions{}))
}
