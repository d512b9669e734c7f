package providertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func (s *Subject) allCalls(id string) calls {
	all := s.readCalls(id)
	all["terminate"] = func(ctx context.Context) error { return s.P.Terminate(ctx, id, providers.TerminateOptions{}) }
	addCall(s, all, "create", func(ctx context.Context, l providers.Launcher) error {
		_, err := l.Create(ctx, sandbox.Spec{Command: []string{"sleep", "600"}})
		return err
	})
	addCall(s, all, "exec", func(ctx context.Context, c providers.Commander) error {
		_, err := c.Exec(ctx, id, providers.Command{Args: []string{"true"}})
		return err
	})
	addCall(s, all, "labels", func(ctx context.Context, e providers.LabelEditor) error {
		_, err := e.EditLabels(ctx, id, func(map[string]string) {})
		return err
	})
	addCall(s, all, "extend", func(ctx context.Context, e providers.Extender) error {
		_, err := e.Extend(ctx, id, time.Now().Add(time.Hour))
		return err
	})
	addCall(s, all, "verify", func(ctx context.Context, v providers.Verifier) error { // no read: it is for ended sandboxes
		_, err := v.VerifyEnd(ctx, id, endQuery(false))
		return err
	})
	return all
}

func (s *Subject) readCalls(id string) calls {
	all := calls{
		"list": func(ctx context.Context) error {
			var errs []error
			for _, err := range s.P.List(ctx, providers.Query{All: true}) {
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		},
		"get": func(ctx context.Context) error { _, err := s.P.Get(ctx, id); return err },
	}
	addCall(s, all, "logs", func(ctx context.Context, r providers.LogReader) error {
		_, err := readLogs(ctx, r, id, providers.LogQuery{})
		return err
	})
	addCall(s, all, "usage", func(ctx context.Context, r providers.UsageReader) error { _, err := r.Usage(ctx, id); return err })
	addCall(s, all, "probe", func(ctx context.Context, r providers.Prober) error { _, err := r.Probe(ctx, id); return err })
	addCall(s, all, "events", func(ctx context.Context, r providers.EventReader) error { _, err := r.Events(ctx, id); return err })
	addCall(s, all, "stats", func(ctx context.Context, r providers.StatsReader) error { _, err := r.Stats(ctx); return err })
	maps.Copy(all, s.controlCalls(id))
	return all
}

type calls map[string]func(context.Context) error

// addCall adds a call of an ability, where the provider has it.
func addCall[A any](s *Subject, all calls, name string, call func(context.Context, A) error) {
	if able, ok := providers.As[A](s.P); ok {
		all[name] = func(ctx context.Context) error { return call(ctx, able) }
	}
}

// callEach makes every call with ctx and expects the kind of error.
func (s *Subject) callEach(t T, ctx context.Context, want fault.Kind, all calls) { //nolint:revive // a check's t comes first
	t.Helper()
	for name, call := range all {
		var err error
		if !s.returnsInTime(func() { err = call(ctx) }) {
			assert.Failf(t, "deaf", "%s does not return when ctx has ended", name)
			continue
		}
		assert.Equal(t, want, fault.KindOf(err), "%s: %v", name, err)
	}
}

func checkCanceled(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.callEach(t, ctx, fault.KindCanceled, s.allCalls(id))
	s.checkStillRuns(t, id, "a canceled call had an effect")
}

func checkDeadline(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	s.callEach(t, ctx, fault.KindTimeout, s.readCalls(id))
}

// checkListContext ends ctx between two items: the rest, which may have been read already, or an error
// must follow; an end without an error would look complete.
func checkListContext(t T, s *Subject) {
	for range s.c.Many {
		s.startSandbox(t, sandbox.Spec{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	items, failed := 0, false
	assert.True(t, s.returnsInTime(func() {
		for _, err := range s.P.List(ctx, providers.Query{}) {
			if err != nil {
				failed = true
				assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
				break
			}
			items++
			cancel()
		}
	}), "list goes on after ctx has ended")
	assert.True(t, failed || items >= s.c.Many, "%d of %d listed, and no error", items, s.c.Many)
}

func lifeFields(b sandbox.Sandbox) sandbox.Sandbox {
	l := stableFields(b)
	l.RawState, l.Labels, l.EndedAt = b.RawState, b.Labels, b.EndedAt
	return l
}

func (s *Subject) readEverything(t T, id string) {
	t.Helper()
	for name, read := range s.readCalls(id) {
		if err := read(s.callContext(t)); err != nil && name != "exit" { // it may have no program of sbx
			assert.False(t, isNotFound(err), "%s: %v", name, err)
		}
	}
}

func checkReadsChangeNothing(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	before, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateRunning, before.State, "it ran, and a read changed the sandbox's life")
	s.readEverything(t, id)
	s.readEverything(t, id)
	after, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	assert.Equal(t, lifeFields(before), lifeFields(after), "a read changed the sandbox's life")
}

func checkReadsWakeNothing(t T, s *Subject) {
	if s.c.Paused == nil {
		t.Skipf("%s knows no pause", s.P.Type())
	}
	id := s.c.Paused(t, s.P)
	s.readEverything(t, id)
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StatePaused, got.State, "a read woke a paused sandbox")
}

func checkErrors(t T, s *Subject) {
	for name, call := range s.allCalls(unknownID) {
		err := call(s.callContext(t))
		if err == nil {
			continue // list, stats and create do not use the id
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

// checkGoroutines makes the calls with a profiler label, which their goroutines inherit, so that those
// of parallel tests do not count.
func checkGoroutines(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	label := fmt.Sprintf("%s-%p", s.P.Name(), s)
	pprof.Do(t.Context(), pprof.Labels("sbx_conformance", label), func(ctx context.Context) {
		for name, read := range s.readCalls(id) {
			_ = read(ctx) // only its goroutines count
			_ = s.readCalls(unknownID)[name](ctx)
		}
		for _, err := range s.P.List(ctx, providers.Query{}) {
			_ = err
			break
		}
		s.abandonFollow(ctx, id)
	})
	if c, ok := s.P.(interface{ Close() }); ok { // idle connections outlive a call
		c.Close()
	}
	var left atomic.Value
	ok := s.c.Eventually(s.c.Limit, func() bool {
		found := goroutinesWithLabel(label)
		left.Store(found)
		return found == ""
	})
	assert.True(t, ok, "goroutines are left behind:\n%v", left.Load())
}

func (s *Subject) abandonFollow(ctx context.Context, id string) {
	r, ok := providers.As[providers.LogReader](s.P)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	s.returnsInTime(func() { // otherwise its goroutine is found
		for _, err := range r.Logs(ctx, id, providers.LogQuery{Follow: true}) {
			_ = err
			break
		}
	})
}

func goroutinesWithLabel(label string) string {
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
