package fleet

import (
	"context"
	"errors"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Create starts one sandbox on a profile. It is sent once and never again: an
// error may leave the outcome open, and then says so. It has no deadline but
// that of ctx. Over Member.MaxSandboxes it is fault.KindRefused, and nothing was sent.
func (f *Fleet) Create(ctx context.Context, profile string, spec sandbox.Spec) (sandbox.Sandbox, error) {
	m, launcher, err := able[providers.Launcher](f, profile, "create")
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	done, err := m.reserve(ctx, f.o.Now)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	made, err := launcher.Create(ctx, spec)
	done(made.ID)
	made = m.Metadata.Read(made)
	if err != nil {
		return made, m.fault(ctx, err, "create")
	}
	f.tell(made.Ref(), "create", "")
	return made, nil
}

// Exec runs a command in a sandbox for as long as ctx allows. An error means
// that it could not be run or that its end was not seen.
func (f *Fleet) Exec(ctx context.Context, ref sandbox.Ref, c providers.Command) (sandbox.Exit, error) {
	m, commander, err := able[providers.Commander](f, ref.Provider, "exec")
	if err != nil {
		return sandbox.Exit{}, err
	}
	exit, err := commander.Exec(ctx, ref.ID, c)
	if err != nil {
		return exit, m.fault(ctx, err, "exec "+ref.ID)
	}
	return exit, nil
}

// ProviderCleanup starts a provider's own cleanup, once. What it ends it chooses by
// itself, so an error may leave open what was done.
func (f *Fleet) ProviderCleanup(ctx context.Context, profile string, emergency bool) (providers.Cleaned, error) {
	m, cleaner, err := able[providers.ProviderCleaner](f, profile, "cleanup")
	if err != nil {
		return providers.Cleaned{}, err
	}
	return call(ctx, m, "cleanup", func(ctx context.Context) (providers.Cleaned, error) {
		return cleaner.Cleanup(ctx, emergency)
	})
}

// Sweep lets every provider that has to clean up after dead control processes
// do so, and gives what was brought to its end. Errors are joined.
func (f *Fleet) Sweep(ctx context.Context) ([]sandbox.Ref, error) {
	var refs []sandbox.Ref
	var errs []error
	for _, m := range f.members {
		sweeper, ok := providers.As[providers.Sweeper](m.Provider)
		if !ok {
			continue
		}
		swept, err := bounded(ctx, m, "sweep", sweeper.Sweep)
		if err != nil {
			errs = append(errs, err)
		}
		for _, ref := range swept.Refs {
			f.tell(ref, "sweep", "its control process had died")
		}
		refs = append(refs, swept.Refs...)
	}
	return refs, errors.Join(errs...)
}
