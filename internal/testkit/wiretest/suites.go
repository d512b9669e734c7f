package wiretest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const lossyWords = "some words\n"

// RunLosses checks a provider behind a proxy that loses answers: reads of sbx are repeated until
// they are complete, and the output of a user's command is complete or an error, never a part of
// it with exit 0.
func RunLosses(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	CheckLosses(t.Context(), t, open(t))
}

// CheckLosses is RunLosses for one provider.
func CheckLosses(ctx context.Context, t T, s Subject) {
	t.Helper()
	for _, route := range s.Inside {
		s.Server.Break(Fault{Route: route, Every: max(s.Every, 2), Trouble: TroubleTruncate})
	}
	id := s.checkProgram(ctx, t)
	for range 3 {
		s.checkCommand(ctx, t, id)
	}
}

// checkProgram creates a sandbox with a program and reads it in every way. It returns the id.
func (s Subject) checkProgram(ctx context.Context, t T) string {
	t.Helper()
	launcher, ok := providers.As[providers.Launcher](s.P)
	if !ok {
		for row, err := range s.P.List(ctx, providers.Query{}) {
			assert.NoError(t, err)
			return row.ID
		}
		return ""
	}
	made, err := launcher.Create(ctx, sandbox.Spec{Command: []string{"sh", "-c", "i=0; while [ $i -lt 5 ]; do echo some words; sleep 0.2; i=$((i+1)); done; exit 3"}})
	if err != nil {
		t.Errorf("create: a start whose answer was lost is asked for again: %v", err)
		return ""
	}
	for _, follow := range []bool{true, false} {
		var text strings.Builder
		if reader, ok := providers.As[providers.LogReader](s.P); ok {
			for line, err := range reader.Logs(ctx, made.ID, providers.LogQuery{Follow: follow}) {
				assert.NoError(t, err, "logs, follow=%t", follow)
				text.WriteString(line.Text + "\n")
			}
			assert.Equal(t, strings.Repeat(lossyWords, 5), text.String(), "logs, follow=%t: each line once, in its place", follow)
		}
	}
	if reader, ok := providers.As[providers.ExitReader](s.P); ok {
		exit, err := reader.Exit(ctx, made.ID)
		if assert.NoError(t, err, "exit") && assert.NotNil(t, exit) && assert.NotNil(t, exit.Code) {
			assert.Equal(t, 3, *exit.Code)
		}
	}
	if reader, ok := providers.As[providers.UsageReader](s.P); ok {
		_, err := reader.Usage(ctx, made.ID)
		assert.NoError(t, err, "usage")
	}
	return made.ID
}

func (s Subject) checkCommand(ctx context.Context, t T, id string) {
	t.Helper()
	c, ok := providers.As[providers.Commander](s.P)
	if !ok {
		return
	}
	var out bytes.Buffer
	exit, err := c.Exec(ctx, id, providers.Command{Args: []string{"sh", "-c", "echo some words"}, Stdout: &out, Stderr: new(bytes.Buffer)})
	if err == nil && assert.NotNil(t, exit.Code) && *exit.Code == 0 {
		assert.Equal(t, lossyWords, out.String(), "a part of its output, and exit 0")
	}
	if err != nil {
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	}
}

const (
	// ownLimit is the limit of the caller.
	ownLimit = 3 * time.Second
	// maxRequests bounds the requests of one verb without an answer, to find endless retries.
	maxRequests = 24
)

// Overrun is by how much a verb may exceed the limit of its caller: one that has started something inside has the
// time to end it.
func Overrun(verb string) time.Duration {
	if strings.HasPrefix(verb, "exec") || strings.HasPrefix(verb, "create") {
		return wirekit.CleanupLimit
	}
	return time.Second
}

type silentFrom struct {
	name   string
	inside bool // only those into the sandbox
	after  int  // requests that are answered before
}

// RunSilence checks every verb of a provider with a server that stops to answer at each of the
// first requests, in virtual time: no verb exceeds the limit of its caller by more than Overrun,
// and without a limit its requests end.
func RunSilence(t *testing.T, open func(t T) Subject) {
	t.Helper()
	for _, from := range []silentFrom{{"everything", false, 0}, {"inside", true, 0}, {"from the second request on", false, 1}, {"from the third request on", false, 2}} {
		for _, verb := range Verbs() {
			t.Run(verb.Name+", "+from.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { CheckSilence(t.Context(), t, verb, from.inside, from.after, open(t)) })
			})
		}
	}
}

// CheckSilence checks one verb, with a limit of its caller and without.
func CheckSilence(ctx context.Context, t T, verb Verb, inside bool, after int, s Subject) {
	t.Helper()
	if inside && s.Inside == nil {
		return
	}
	s.silenceRoutes(inside, after)
	for _, limit := range []time.Duration{ownLimit, 0} {
		began, before := time.Now(), len(s.Server.Calls(""))
		err := s.runLimited(ctx, limit, verb)
		if fault.KindOf(err) == fault.KindUnsupported {
			return
		}
		took, asked := time.Since(began), len(s.Server.Calls(""))-before
		switch {
		case limit > 0:
			assert.LessOrEqual(t, took, limit+Overrun(verb.Name), "%s outlives its limit of %s: %v", verb.Name, limit, err)
		default:
			assert.Less(t, took, callLimit, "%s waits for ever: %v", verb.Name, err)
		}
		assert.LessOrEqual(t, asked, maxRequests, "%s asks again and again: %v", verb.Name, err)
		if !inside && after == 0 {
			assert.Error(t, err, "%s has heard nothing, and says that all is well", verb.Name) //nolint:testifylint // the rest is checked all the same
		}
		s.Server.Heal()
		s.silenceRoutes(inside, after)
	}
	s.Server.Heal()
	if c, ok := s.P.(interface{ Close() }); ok {
		c.Close()
	}
}

// runLimited runs a verb with the limit, or with callLimit, so that a verb without an end is found.
func (s Subject) runLimited(ctx context.Context, limit time.Duration, verb Verb) error {
	if limit == 0 {
		limit = callLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return verb.Run(ctx, s.P, s.ID)
}

func (s Subject) silenceRoutes(inside bool, after int) {
	routes := []string{""}
	if inside {
		routes = s.Inside
	}
	for _, route := range routes {
		s.Server.Break(Fault{Route: route, After: after, Trouble: TroubleHang})
	}
}

// Verb is one call of a provider, for suites that check a rule for every call. Run is
// fault.KindUnsupported for an ability that the provider lacks.
type Verb struct {
	Name string
	Run  func(ctx context.Context, p providers.Provider, id string) error
}

// Verbs lists the calls that the commands of sbx make: list, get, stop and its proof, create, and
// the reads inside a sandbox.
func Verbs() []Verb {
	return []Verb{
		{"list", func(ctx context.Context, p providers.Provider, _ string) error {
			_, err := countRows(ctx, p)
			return err
		}},
		{"get", func(ctx context.Context, p providers.Provider, id string) error { _, err := p.Get(ctx, id); return err }},
		{"stop", func(ctx context.Context, p providers.Provider, id string) error {
			return p.Terminate(ctx, id, providers.TerminateOptions{})
		}},
		{"delete", func(ctx context.Context, p providers.Provider, id string) error {
			return p.Terminate(ctx, id, providers.TerminateOptions{Delete: true})
		}},
		{"verify", callAbility(func(ctx context.Context, v providers.Verifier, id string) error {
			proof, err := v.VerifyEnd(ctx, id, providers.EndQuery{Delete: true, Since: time.Now().Add(-time.Minute), Now: time.Now()})
			if err == nil && proof.Ended != sandbox.True {
				return fault.New(fault.KindUnverified, "%s", proof.Reason)
			}
			return err
		})},
		{"logs", callAbility(func(ctx context.Context, r providers.LogReader, id string) error {
			return drainLog(r.Logs(ctx, id, providers.LogQuery{}))
		})},
		{"logs -f", callAbility(func(ctx context.Context, r providers.LogReader, id string) error {
			return drainLog(r.Logs(ctx, id, providers.LogQuery{Follow: true}))
		})},
		{"usage", callAbility(func(ctx context.Context, r providers.UsageReader, id string) error {
			_, err := r.Usage(ctx, id)
			return err
		})},
		{"exit", callAbility(func(ctx context.Context, r providers.ExitReader, id string) error {
			_, err := r.Exit(ctx, id)
			return err
		})},
		{"probe", callAbility(func(ctx context.Context, p providers.Prober, id string) error { _, err := p.Probe(ctx, id); return err })},
		{"events", callAbility(func(ctx context.Context, r providers.EventReader, id string) error {
			_, err := r.Events(ctx, id)
			return err
		})},
		{"exec", callAbility(func(ctx context.Context, c providers.Commander, id string) error { return runCommand(ctx, c, id, nil) })},
		{"exec with stdin", callAbility(func(ctx context.Context, c providers.Commander, id string) error {
			return runCommand(ctx, c, id, strings.NewReader("some words"))
		})},
		{"create", callAbility(func(ctx context.Context, l providers.Launcher, _ string) error {
			_, err := l.Create(ctx, sandbox.Spec{})
			return err
		})},
		{"create with a program", callAbility(func(ctx context.Context, l providers.Launcher, _ string) error {
			_, err := l.Create(ctx, sandbox.Spec{Command: []string{"true"}})
			return err
		})},
	}
}

func callAbility[T any](call func(context.Context, T, string) error) func(context.Context, providers.Provider, string) error {
	return func(ctx context.Context, p providers.Provider, id string) error {
		able, ok := providers.As[T](p)
		if !ok {
			return fault.New(fault.KindUnsupported, "the provider lacks it")
		}
		return call(ctx, able, id)
	}
}

// runCommand runs a short command that writes to both streams.
func runCommand(ctx context.Context, c providers.Commander, id string, stdin io.Reader) error {
	_, err := c.Exec(ctx, id, providers.Command{Args: []string{"sh", "-c", "echo out; echo err >&2"}, Stdin: stdin, Stdout: io.Discard, Stderr: new(strings.Builder)})
	return err
}

func drainLog(lines iter.Seq2[sandbox.LogLine, error]) error {
	var failed error
	for _, err := range lines {
		failed = errors.Join(failed, err)
	}
	return failed
}
