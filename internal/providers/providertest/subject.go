package providertest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Subject is the provider under one check, with the ways to set its stage.
type Subject struct {
	P providers.Provider
	c Config
}

func newSubject(t T, c Config) *Subject {
	t.Helper()
	if c.Many == 0 {
		c.Many = 3
	}
	if c.Limit == 0 {
		c.Limit = 10 * time.Second
	}
	if c.Eventually == nil {
		c.Eventually = look
	}
	return &Subject{P: c.New(t), c: c}
}

// look is Eventually on a timer.
func look(limit time.Duration, ok func() bool) bool {
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

// context gives every call of a check a real deadline.
func (s *Subject) context(t T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), s.c.Limit)
	t.Cleanup(cancel)
	return ctx
}

// start brings one running sandbox into being.
func (s *Subject) start(t T, spec sandbox.Spec) string {
	t.Helper()
	if s.c.Start != nil {
		id := s.c.Start(t, s.P, spec)
		s.discard(t, id)
		return id
	}
	launcher, ok := providers.As[providers.Launcher](s.P)
	if !ok {
		t.Skipf("%s cannot create and Config.Start is not set", s.P.Type())
	}
	if len(spec.Command) == 0 {
		spec.Command = []string{"sleep", "600"}
	}
	made, err := launcher.Create(s.context(t), spec)
	require.NoError(t, err, "create")
	s.discard(t, made.ID)
	s.becomes(t, made.ID, "running", func(got sandbox.Sandbox, err error) bool {
		return err == nil && got.State == sandbox.StateRunning
	})
	return made.ID
}

// discard deletes a sandbox when the check is over, whatever became of it.
func (s *Subject) discard(t T, id string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), s.c.Limit)
		defer cancel()
		_ = s.P.Terminate(ctx, id, providers.TerminateOptions{Delete: true, By: "conformance"}) // most have ended already
	})
}

// ability gives the ability that a check has been chosen for.
func ability[A any](t T, s *Subject) A {
	t.Helper()
	a, ok := providers.As[A](s.P)
	require.True(t, ok, "the ability is missing")
	return a
}

// write brings a running sandbox into being that has written lines.
func (s *Subject) write(t T, lines ...string) string {
	t.Helper()
	if s.c.Write != nil {
		return s.c.Write(t, s.P, lines)
	}
	script := "echo " + strings.Join(lines, "; echo ") + "; sleep 600"
	id := s.start(t, sandbox.Spec{Command: []string{"sh", "-c", script}})
	reader, ok := providers.As[providers.LogReader](s.P)
	if !ok {
		return id
	}
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		got, err := logs(s.context(t), reader, id, providers.LogQuery{})
		return err == nil && len(got) >= len(lines)
	}), "what the program writes does not arrive in its log")
	return id
}

// end terminates a sandbox and waits for its end.
func (s *Subject) end(t T, id string) {
	t.Helper()
	require.NoError(t, s.P.Terminate(s.context(t), id, providers.TerminateOptions{By: "conformance"}), "terminate")
	s.becomes(t, id, "ended", over)
}

// over says that a read of a terminated sandbox shows its end. `stopped` is
// one here, since the end was asked for.
func over(got sandbox.Sandbox, err error) bool {
	if err != nil {
		return missing(err)
	}
	return got.State.Ended() || got.State == sandbox.StateStopped
}

// missing says that a read found nothing, with or without proof that it was.
func missing(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindGone || kind == fault.KindNotFound
}

func (s *Subject) becomes(t T, id, what string, ok func(sandbox.Sandbox, error) bool) {
	t.Helper()
	var last sandbox.Sandbox
	var err error
	if !s.c.Eventually(s.c.Limit, func() bool {
		last, err = s.P.Get(s.context(t), id)
		return ok(last, err)
	}) {
		require.FailNowf(t, "not "+what, "%s is %q (%v) after %s", id, last.State, err, s.c.Limit)
	}
}

// list reads a whole listing.
func (s *Subject) list(t T) []sandbox.Sandbox {
	t.Helper()
	var all []sandbox.Sandbox
	for item, err := range s.P.List(s.context(t), providers.Query{All: true}) {
		require.NoError(t, err, "list")
		all = append(all, item)
	}
	return all
}

func logs(ctx context.Context, r providers.LogReader, id string, q providers.LogQuery) ([]sandbox.LogLine, error) {
	var all []sandbox.LogLine
	for line, err := range r.Logs(ctx, id, q) {
		if err != nil {
			return all, err
		}
		all = append(all, line)
	}
	return all, nil
}

// returns runs f beside the check and says whether it came back in time and
// without a panic; a provider that does not hear the end of ctx must not hang
// the suite.
func (s *Subject) returns(f func()) bool {
	done := make(chan bool, 1)
	go func() {
		defer func() { done <- recover() == nil }()
		f()
	}()
	timer := time.NewTimer(s.c.Limit)
	defer timer.Stop()
	select {
	case well := <-done:
		return well
	case <-timer.C:
		return false
	}
}
