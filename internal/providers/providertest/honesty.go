package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func honestyChecks() []Check {
	return []Check{
		{"reading_changes_nothing", "", readingChangesNothing},
		{"reading_wakes_nothing", "", readingWakesNothing},
		{"errors_are_faults", "", errorsAreFaults},
		{"no_goroutine_is_left", "", noGoroutine},
	}
}

// life is what no read may change.
func life(b sandbox.Sandbox) sandbox.Sandbox {
	l := identity(b)
	l.RawState, l.Labels, l.EndedAt = b.RawState, b.Labels, b.EndedAt
	return l
}

func (s *Subject) readEverything(t T, id string) {
	t.Helper()
	for name, read := range s.reads(id) {
		if err := read(s.context(t)); err != nil && name != "exit" { // there may be no program of ours in it
			assert.False(t, missing(err), "%s: %v", name, err)
		}
	}
}

func readingChangesNothing(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	before, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateRunning, before.State, "it ran, and a read changed the sandbox's life")
	s.readEverything(t, id)
	s.readEverything(t, id)
	after, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.Equal(t, life(before), life(after), "a read changed the sandbox's life")
}

func readingWakesNothing(t T, s *Subject) {
	if s.c.Paused == nil {
		t.Skipf("%s knows no pause", s.P.Type())
	}
	id := s.c.Paused(t, s.P)
	s.readEverything(t, id)
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StatePaused, got.State, "a read woke a paused sandbox")
}

func errorsAreFaults(t T, s *Subject) {
	for name, call := range s.calls(unknownID) {
		err := call(s.context(t))
		if err == nil {
			continue // list, stats and create do not ask for the unknown one
		}
		var f *fault.Error
		require.ErrorAs(t, err, &f, "%s: %v", name, err)
		assert.Equal(t, s.P.Name(), f.Provider, "%s: an error names its profile", name)
		text := err.Error() + fault.HintOf(err)
		assert.NotContains(t, text, "\n", "%s: an error is one line", name)
		assert.False(t, strings.HasSuffix(err.Error(), "."), "%s: an error ends without a full stop: %s", name, text)
		for _, secret := range s.c.Secrets {
			assert.NotContains(t, text, secret, "%s: an error quotes a secret", name)
		}
		unwrapped := errors.Unwrap(f)
		if unwrapped != nil {
			for _, secret := range s.c.Secrets {
				assert.NotContains(t, unwrapped.Error(), secret, "%s: the cause of an error quotes a secret", name)
			}
		}
	}
}

// noGoroutine marks the calls with a profiler label, which the goroutines they
// start inherit, so that tests that run beside it do not count.
func noGoroutine(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	label := fmt.Sprintf("%s-%p", s.P.Name(), s)
	pprof.Do(t.Context(), pprof.Labels("sbx_conformance", label), func(ctx context.Context) {
		for name, read := range s.reads(id) {
			_ = read(ctx) // only what it leaves behind counts
			_ = s.reads(unknownID)[name](ctx)
		}
		for _, err := range s.P.List(ctx, providers.Query{}) {
			_ = err
			break
		}
		s.abandonFollow(ctx, id)
	})
	if s.c.Settle != nil {
		s.c.Settle(s.P)
	}
	var left atomic.Value
	ok := s.c.Eventually(s.c.Limit, func() bool {
		found := labelled(label)
		left.Store(found)
		return found == ""
	})
	assert.True(t, ok, "goroutines are left behind:\n%v", left.Load())
}

// abandonFollow follows a log and stops listening.
func (s *Subject) abandonFollow(ctx context.Context, id string) {
	r, ok := providers.As[providers.LogReader](s.P)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	s.returns(func() { // if it does not, it is found by its label
		for _, err := range r.Logs(ctx, id, providers.LogQuery{Follow: true}) {
			_ = err
			break
		}
	})
}

// labelled gives the stacks of goroutines that carry the label.
func labelled(label string) string {
	var dump bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&dump, 1); err != nil {
		return err.Error()
	}
	var found []string
	for block := range strings.SplitSeq(dump.String(), "\n\n") {
		if strings.Contains(block, label) {
			found = append(found, block)
		}
	}
	return strings.Join(found, "\n\n")
}
