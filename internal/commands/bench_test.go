package commands

import (
	"context"
	"testing"

	"sbx/internal/fleet"
	"sbx/internal/process"
)

// deps assembles what the verbs get, for parts of them that need no command.
func (b *bench) deps(t *testing.T) *Deps {
	t.Helper()
	d, _ := b.assemble(process.Process{Args: []string{"sbx"}, Environ: b.env, Home: b.home, Workdir: b.workdir, Now: atNoon})
	return d
}

// configureNothing gives the bench a home without files.
func (b *bench) configureNothing(t *testing.T) *bench {
	t.Helper()
	b.home = t.TempDir()
	return b
}

func failingFleet(err error) func(context.Context) (*fleet.Fleet, error) {
	return func(context.Context) (*fleet.Fleet, error) { return nil, err }
}
