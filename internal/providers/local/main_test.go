//go:build unix

package local_test

import (
	"context"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/providers/local"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/tiertest"
)

// The test binary is its own supervisor and stub, as the product's is.
func TestMain(m *testing.M) {
	if status, done := local.Reexec(os.Args); done {
		syscall.Exit(status) // not os.Exit: the race detector would make every end of a sandbox wait a second
	}
	if len(os.Args) > 2 && os.Args[1] == programArg {
		os.Exit(program(os.Args[2:]))
	}
	os.Exit(providertest.Wide{M: m}.Run())
}

// bench is a provider over a state folder of its own.
type bench struct {
	*local.Client
	state string
}

func newBench(tb testing.TB) bench {
	tb.Helper()
	return newBenchAt(tb, tb.TempDir(), nil)
}

func newBenchAt(tb testing.TB, state string, settings map[string]string) bench {
	tb.Helper()
	b := bench{open(tb, state, settings), state}
	tb.Cleanup(func() { b.endAll(tb) })
	return b
}

func open(tb testing.TB, state string, settings map[string]string) *local.Client {
	tb.Helper()
	return openBy(tb, time.Now, state, settings)
}

// at is the same provider by another wall clock.
func (b bench) at(tb testing.TB, now func() time.Time) *local.Client {
	tb.Helper()
	return openBy(tb, now, b.state, nil)
}

func openBy(tb testing.TB, now func() time.Time, state string, settings map[string]string) *local.Client {
	tb.Helper()
	t := local.Type()
	p := providers.Profile{Name: "local", Type: t.Name, Settings: map[string]string{}}
	for _, o := range t.Options {
		p.Settings[o.Name] = o.Default
	}
	maps.Copy(p.Settings, settings)
	opened, err := t.Open(tb.Context(), p, providers.Deps{
		Now: now, StateDir: state, Version: "test", Notice: func(text string) { tb.Log(text) },
		Lookup: os.LookupEnv, TimeScale: 3, // a test that waits for all of a limit takes that much longer
	})
	require.NoError(tb, err)
	client, ok := opened.(*local.Client)
	require.True(tb, ok)
	return client
}

// endAll leaves nothing behind, whatever a test did.
func (b bench) endAll(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), tiertest.Limit(tb))
	defer cancel()
	_, _ = b.Sweep(ctx)
	for s, err := range b.List(ctx, providers.Query{All: true}) {
		if err == nil && !s.State.Ended() {
			_ = b.Terminate(ctx, s.ID, providers.TerminateOptions{By: "test cleanup"})
		}
	}
}

func (b bench) create(tb testing.TB, spec sandbox.Spec) sandbox.Sandbox {
	tb.Helper()
	s, err := b.Create(tb.Context(), spec)
	require.NoError(tb, err)
	return s
}

func (b bench) sh(tb testing.TB, script string) sandbox.Sandbox {
	tb.Helper()
	return b.create(tb, sandbox.Spec{Command: []string{"sh", "-c", script}})
}

// ended waits for a sandbox's end.
func (b bench) ended(tb testing.TB, id string) sandbox.Sandbox {
	tb.Helper()
	var s sandbox.Sandbox
	require.Eventually(tb, func() bool {
		var err error
		s, err = b.Get(tb.Context(), id)
		return err == nil && s.State.Ended()
	}, tiertest.Limit(tb), 5*time.Millisecond, "sandbox %s does not end", id)
	return s
}

func (b bench) output(tb testing.TB, id string) string {
	tb.Helper()
	var lines []string
	for l, err := range b.Logs(tb.Context(), id, providers.LogQuery{}) {
		require.NoError(tb, err)
		lines = append(lines, l.Text)
	}
	return strings.Join(lines, "\n")
}
