package fleet

import (
	"context"
	"errors"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Admit asks whether a sandbox of this size, in bytes, may start on a profile now; 0 = the
// profile's default size. It is nil where the provider has no admission control, and
// fault.KindRefused, with the reason, where it may not.
func (f *Fleet) Admit(ctx context.Context, profile string, memoryBytes int64) error {
	m, err := f.findMember(profile)
	if err != nil {
		return err
	}
	if _, unopened := m.Provider.(*providers.Unopened); unopened {
		return providers.Unsupported(m.Provider, "admit", nil) // the error says why it could not be opened
	}
	a, ok := providers.As[providers.Admitter](m.Provider)
	if !ok {
		return nil
	}
	_, err = callWithTimeout(ctx, m, "admit", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, a.Admit(ctx, memoryBytes)
	})
	return err
}

// Vet asks whether a sandbox could ever start on a profile; nil where the provider cannot
// know, or could not be opened: create reports the reason.
func (f *Fleet) Vet(profile string, spec sandbox.Spec) error {
	m, err := f.findMember(profile)
	if err != nil {
		return err
	}
	if v, ok := providers.As[providers.Vetter](m.Provider); ok {
		return v.Vet(spec)
	}
	return nil
}

// CanCreate is nil where a profile can create sandboxes; otherwise fault.KindUnsupported, or why it could
// not be opened. No request is sent.
func (f *Fleet) CanCreate(profile string) error {
	_, _, err := requireAbility[providers.Launcher](f, profile, "create")
	return err
}

// Labelled reads every sandbox of one profile that has exactly these labels, in any state
// except ended. The result is complete or an error. Without labels it is fault.KindUsage:
// that would be everything. A profile that cannot create is fault.KindUnsupported: sbx has
// labelled nothing there, so an empty result would prove nothing.
//
// A listing may lag behind: a sandbox created a moment ago may be missing.
func (f *Fleet) Labelled(ctx context.Context, profile string, labels map[string]string) ([]sandbox.Sandbox, error) {
	if len(labels) == 0 {
		return nil, fault.Usage("no label to search for").At(profile, "list")
	}
	m, _, err := requireAbility[providers.Launcher](f, profile, "create")
	if err != nil {
		return nil, err
	}
	var found []sandbox.Sandbox
	for s, err := range m.streamRows(ctx, "list", providers.Query{Labels: labels}) {
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return distinctWhere(found, func(s sandbox.Sandbox) bool { return !s.State.Ended() && hasLabels(s, labels) }), nil
}

// Copies finds what the create of a sandbox has made beside it, in any state except ended: by the name that all of them
// would have where the provider has such names, else by a whole listing (Labelled).
func (f *Fleet) Copies(ctx context.Context, ref sandbox.Ref, nonce string) ([]sandbox.Sandbox, error) {
	m, reader, err := requireAbility[providers.CopyReader](f, ref.Provider, "create")
	if err != nil {
		return f.Labelled(ctx, ref.Provider, map[string]string{sandbox.LabelNonce: nonce})
	}
	found, err := callInSlot(ctx, m, "copies of "+ref.ID, func(ctx context.Context) ([]sandbox.Sandbox, error) {
		return reader.Copies(ctx, ref.ID, nonce)
	})
	return distinctWhere(found, func(s sandbox.Sandbox) bool { return !s.State.Ended() }), err
}

// Marked finds the sandboxes of a create whose response was lost.
func (f *Fleet) Marked(ctx context.Context, mark providers.CreateMark) ([]sandbox.Sandbox, error) {
	if mark.Name == "" {
		return f.Labelled(ctx, mark.Provider, map[string]string{sandbox.LabelNonce: mark.Nonce})
	}
	s, err := f.Resolve(ctx, sandbox.Ref{Provider: mark.Provider, ID: mark.Name})
	switch kind := fault.KindOf(err); {
	case kind == fault.KindNotFound || kind == fault.KindGone || err == nil && s.State.Ended():
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []sandbox.Sandbox{s}, nil
}

// hasLabels compares the labels with those requested: a provider may list more.
func hasLabels(s sandbox.Sandbox, labels map[string]string) bool {
	for key, want := range labels {
		if got, ok := s.Labels[key]; !ok || got != want {
			return false
		}
	}
	return true
}

// Create starts one sandbox on a profile. The request is sent once: an error says so where
// it leaves the outcome open. The only deadline is that of ctx. Over Member.MaxSandboxes it
// is fault.KindRefused, and nothing was sent.
func (f *Fleet) Create(ctx context.Context, profile string, spec sandbox.Spec) (sandbox.Sandbox, error) {
	m, launcher, err := requireAbility[providers.Launcher](f, profile, "create")
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	done, err := m.reserveCapacity(ctx, f.o.Now)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	made, err := launcher.Create(ctx, spec)
	done(made.ID)
	made = m.Metadata.Read(made)
	if err != nil {
		f.keepUndo(ctx, made, err)
		return made, m.asFault(ctx, err, "create")
	}
	f.recordEvent(made.Ref(), "create", "")
	return made, nil
}

// keepUndo stores that the end of a sandbox which its own create has ended again was acknowledged. Whoever verifies
// that end finds no such sandbox, which alone proves nothing.
func (f *Fleet) keepUndo(ctx context.Context, made sandbox.Sandbox, err error) {
	if f.o.EndRequests == nil || made.ID == "" || !errors.Is(err, providers.ErrUndone) {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer stop()
	_ = f.o.EndRequests.Keep(ctx, made.Ref(), sandbox.EndRequest{ // without it the end stays unproved, as for any other process
		At: f.o.Now().UTC(), Acknowledged: true, Delete: true, CreatedAt: made.CreatedAt, StartedAt: made.StartedAt, Node: made.Node, ExpiresAt: expiry(made),
	})
}

// Exec runs a command in a sandbox for as long as ctx allows. An error means that it could
// not be run or that its end was not observed.
func (f *Fleet) Exec(ctx context.Context, ref sandbox.Ref, c providers.Command) (sandbox.Exit, error) {
	m, commander, err := requireAbility[providers.Commander](f, ref.Provider, "exec")
	if err != nil {
		return sandbox.Exit{}, err
	}
	exit, err := commander.Exec(ctx, ref.ID, c)
	if err != nil {
		return exit, m.asFault(ctx, err, "exec "+ref.ID)
	}
	return exit, nil
}

// ProviderCleanup starts a provider's own cleanup, once. The provider chooses what to end,
// so an error may leave open what was done.
func (f *Fleet) ProviderCleanup(ctx context.Context, profile string, emergency bool) (providers.Cleaned, error) {
	m, cleaner, err := requireAbility[providers.ProviderCleaner](f, profile, "cleanup")
	if err != nil {
		return providers.Cleaned{}, err
	}
	return callInSlot(ctx, m, "cleanup", func(ctx context.Context) (providers.Cleaned, error) {
		return cleaner.Cleanup(ctx, emergency)
	})
}

// Sweep calls every provider that cleans up after dead control processes, and returns what
// they ended. Errors are joined.
func (f *Fleet) Sweep(ctx context.Context) (providers.Swept, error) {
	var all providers.Swept
	var errs []error
	for _, m := range f.members {
		sweeper, ok := providers.As[providers.Sweeper](m.Provider)
		if !ok {
			continue
		}
		swept, err := callWithTimeout(ctx, m, "sweep", sweeper.Sweep)
		if err != nil {
			errs = append(errs, err)
		}
		for _, ref := range swept.Refs {
			f.recordEvent(ref, "sweep", "its control process had died")
		}
		for _, ref := range swept.Tied {
			f.recordEvent(ref, "sweep", "the process that it was tied to is gone")
		}
		all.Refs, all.Tied = append(all.Refs, swept.Refs...), append(all.Tied, swept.Tied...)
	}
	return all, errors.Join(errs...)
}
