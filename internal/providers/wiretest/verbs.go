package wiretest

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Verb is one call of a provider, as suites make it that hold every call to one
// rule. Run gives fault.KindUnsupported for an ability that the provider lacks.
type Verb struct {
	Name string
	Run  func(ctx context.Context, p providers.Provider, id string) error
}

// Verbs lists the calls by which the verbs of sbx use a provider: list, get, stop
// and its proof, create, and the looks inside.
func Verbs() []Verb {
	return []Verb{
		{"list", func(ctx context.Context, p providers.Provider, _ string) error { _, err := listing(ctx, p); return err }},
		{"get", func(ctx context.Context, p providers.Provider, id string) error { _, err := p.Get(ctx, id); return err }},
		{"stop", func(ctx context.Context, p providers.Provider, id string) error {
			return p.Terminate(ctx, id, providers.TerminateOptions{})
		}},
		{"delete", func(ctx context.Context, p providers.Provider, id string) error {
			return p.Terminate(ctx, id, providers.TerminateOptions{Delete: true})
		}},
		{"verify", with(func(ctx context.Context, v providers.Verifier, id string) error {
			proof, err := v.VerifyEnd(ctx, id, providers.EndQuery{Delete: true, Since: time.Now().Add(-time.Minute), Now: time.Now()})
			if err == nil && proof.Ended != sandbox.True {
				return fault.New(fault.KindUnverified, "%s", proof.Reason)
			}
			return err
		})},
		{"logs", with(func(ctx context.Context, r providers.LogReader, id string) error {
			return drain(r.Logs(ctx, id, providers.LogQuery{}))
		})},
		{"logs -f", with(func(ctx context.Context, r providers.LogReader, id string) error {
			return drain(r.Logs(ctx, id, providers.LogQuery{Follow: true}))
		})},
		{"usage", with(func(ctx context.Context, r providers.UsageReader, id string) error {
			_, err := r.Usage(ctx, id)
			return err
		})},
		{"exit", with(func(ctx context.Context, r providers.ExitReader, id string) error {
			_, err := r.Exit(ctx, id)
			return err
		})},
		{"probe", with(func(ctx context.Context, p providers.Prober, id string) error { _, err := p.Probe(ctx, id); return err })},
		{"events", with(func(ctx context.Context, r providers.EventReader, id string) error {
			_, err := r.Events(ctx, id)
			return err
		})},
		{"exec", with(func(ctx context.Context, c providers.Commander, id string) error { return run(ctx, c, id, nil) })},
		{"exec with stdin", with(func(ctx context.Context, c providers.Commander, id string) error {
			return run(ctx, c, id, strings.NewReader("some words"))
		})},
		{"create", with(func(ctx context.Context, l providers.Launcher, _ string) error {
			_, err := l.Create(ctx, sandbox.Spec{})
			return err
		})},
		{"create with a program", with(func(ctx context.Context, l providers.Launcher, _ string) error {
			_, err := l.Create(ctx, sandbox.Spec{Command: []string{"true"}})
			return err
		})},
	}
}

// with is the call of an ability.
func with[T any](call func(context.Context, T, string) error) func(context.Context, providers.Provider, string) error {
	return func(ctx context.Context, p providers.Provider, id string) error {
		able, ok := providers.As[T](p)
		if !ok {
			return fault.New(fault.KindUnsupported, "the provider lacks it")
		}
		return call(ctx, able, id)
	}
}

// run runs a command that ends at once and writes to both streams.
func run(ctx context.Context, c providers.Commander, id string, stdin io.Reader) error {
	_, err := c.Exec(ctx, id, providers.Command{Args: []string{"sh", "-c", "echo out; echo err >&2"}, Stdin: stdin, Stdout: io.Discard, Stderr: new(strings.Builder)})
	return err
}

func drain(lines iter.Seq2[sandbox.LogLine, error]) error {
	var failed error
	for _, err := range lines {
		failed = errors.Join(failed, err)
	}
	return failed
}
