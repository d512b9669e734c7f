package providertest

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Subject is the provider of one check.
type Subject struct {
	P providers.Provider
	c Config
}

func newSubject(t T, c Config) *Subject {
	t.Helper()
	c.Many, c.Limit = cmp.Or(c.Many, 3), cmp.Or(c.Limit, 10*time.Second)
	c.EndLimit = cmp.Or(c.EndLimit, c.Limit)
	if c.Eventually == nil {
		c.Eventually = pollUntil
	}
	return &Subject{P: c.New(t), c: c}
}

// pollUntil is the default of Config.Eventually.
func pollUntil(limit time.Duration, ok func() bool) bool {
	deadline := time.Now().Add(limit)
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			return false
		}
		<-pace.C
	}
	return true
}

func (s *Subject) callContext(t T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), s.c.Limit)
	t.Cleanup(cancel)
	return ctx
}

func (s *Subject) startSandbox(t T, spec sandbox.Spec) string {
	t.Helper()
	if s.c.Start != nil {
		id := s.c.Start(t, s.P, spec)
		s.deleteAfter(t, id)
		return id
	}
	launcher, ok := providers.As[providers.Launcher](s.P)
	if !ok {
		t.Skipf("%s cannot create and Config.Start is not set", s.P.Type())
	}
	if len(spec.Command) == 0 {
		spec.Command = []string{"sleep", "600"}
	}
	made, err := launcher.Create(s.callContext(t), spec)
	require.NoError(t, err, "create")
	s.deleteAfter(t, made.ID)
	s.awaitState(t, made.ID, "running", s.c.Limit, func(got sandbox.Sandbox, err error) bool {
		return err == nil && got.State == sandbox.StateRunning
	})
	return made.ID
}

func (s *Subject) deleteAfter(t T, id string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), s.c.Limit)
		defer cancel()
		_ = s.P.Terminate(ctx, id, providers.TerminateOptions{Delete: true, By: "conformance"}) // most have ended already
	})
}

func requireAbility[A any](t T, s *Subject) A {
	t.Helper()
	a, ok := providers.As[A](s.P)
	require.True(t, ok, "the ability is missing")
	return a
}

func (s *Subject) startWriter(t T, lines ...string) string {
	t.Helper()
	if s.c.Write != nil {
		return s.c.Write(t, s.P, lines)
	}
	script := "echo " + strings.Join(lines, "; echo ") + "; sleep 600"
	id := s.startSandbox(t, sandbox.Spec{Command: []string{"sh", "-c", script}})
	reader, ok := providers.As[providers.LogReader](s.P)
	if !ok {
		return id
	}
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		got, err := readLogs(s.callContext(t), reader, id, providers.LogQuery{})
		return err == nil && len(got) >= len(lines)
	}), "what the program writes does not arrive in its log")
	return id
}

func (s *Subject) endSandbox(t T, id string) {
	t.Helper()
	require.NoError(t, s.P.Terminate(s.callContext(t), id, providers.TerminateOptions{By: "conformance"}), "terminate")
	s.awaitState(t, id, "ended", s.c.EndLimit, showsEnd)
}

// showsEnd says that a read of a terminated sandbox shows its end. `stopped` counts, since the end was
// requested.
func showsEnd(got sandbox.Sandbox, err error) bool {
	if err != nil {
		return isNotFound(err)
	}
	return got.State.Ended() || got.State == sandbox.StateStopped
}

func isNotFound(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindGone || kind == fault.KindNotFound
}

func (s *Subject) awaitState(t T, id, what string, limit time.Duration, ok func(sandbox.Sandbox, error) bool) {
	t.Helper()
	var last sandbox.Sandbox
	var err error
	if !s.c.Eventually(limit, func() bool {
		last, err = s.P.Get(s.callContext(t), id)
		return ok(last, err)
	}) {
		require.FailNowf(t, "not "+what, "%s is %q (%v) after %s", id, last.State, err, limit)
	}
}

func (s *Subject) readList(t T) []sandbox.Sandbox {
	t.Helper()
	var all []sandbox.Sandbox
	for item, err := range s.P.List(s.callContext(t), providers.Query{All: true}) {
		require.NoError(t, err, "list")
		all = append(all, item)
	}
	return all
}

func readLogs(ctx context.Context, r providers.LogReader, id string, q providers.LogQuery) ([]sandbox.LogLine, error) {
	var all []sandbox.LogLine
	for line, err := range r.Logs(ctx, id, q) {
		if err != nil {
			return all, err
		}
		all = append(all, line)
	}
	return all, nil
}

// returnsInTime runs f in a goroutine and says whether it returned within Config.Limit and without a
// panic, so that a call that ignores ctx does not block the suite.
func (s *Subject) returnsInTime(f func()) bool {
	done := make(chan bool, 1)
	go func() {
		defer func() { done <- recover() == nil }()
		f()
	}()
	select {
	case well := <-done:
		return well
	case <-time.After(s.c.Limit):
		return false
	}
}
