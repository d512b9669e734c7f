//go:build unix

package local_test

import (
	"context"
	"os"
	"testing"
	"time"

	"sbx/internal/providers"
	"sbx/internal/providers/local"
	"sbx/internal/testkit/providertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Config{New: openFor})
}

// openFor opens a provider over a state folder of its own, for checks that are
// not tests, and ends what they leave.
func openFor(t providertest.T) providers.Provider {
	t.Helper()
	state, err := os.MkdirTemp("", "sbx-conformance-*")
	if err != nil {
		t.Errorf("%v", err)
		t.FailNow()
	}
	kind := local.Type()
	p := providers.Profile{Name: "local", Type: kind.Name, Settings: map[string]string{}}
	for _, o := range kind.Options {
		p.Settings[o.Name] = o.Default
	}
	opened, err := kind.Open(t.Context(), p, providers.Deps{
		Now: time.Now, StateDir: state, Version: "test", Notice: func(string) {}, Lookup: os.LookupEnv,
	})
	if err != nil {
		t.Errorf("%v", err)
		t.FailNow()
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for s, err := range opened.List(ctx, providers.Query{All: true}) {
			if err == nil && !s.State.Ended() {
				_ = opened.Terminate(ctx, s.ID, providers.TerminateOptions{By: "test cleanup"})
			}
		}
		_ = os.RemoveAll(state)
	})
	return opened
}
