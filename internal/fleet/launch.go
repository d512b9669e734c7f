package fleet

import (
	"context"
	"iter"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Admit asks whether a sandbox of this size, in bytes, may start on a profile now;
// 0 = of the profile's default size. Nil also where the provider has no say in it.
// fault.KindRefused, with the reason: not now.
func (f *Fleet) Admit(ctx context.Context, profile string, memoryBytes int64) error {
	m, err := f.member(profile)
	if err != nil {
		return err
	}
	if _, unopened := m.Provider.(*providers.Unopened); unopened {
		return providers.Unsupported(m.Provider, "admit", nil) // which says why it could not be opened
	}
	a, ok := providers.As[providers.Admitter](m.Provider)
	if !ok {
		return nil
	}
	_, err = bounded(ctx, m, "admit", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, a.Admit(ctx, memoryBytes)
	})
	return err
}

// Vet asks whether a sandbox could ever start on a profile; nil also where the provider
// cannot know, or could not be opened: the create says why.
func (f *Fleet) Vet(profile string, spec sandbox.Spec) error {
	m, err := f.member(profile)
	if err != nil {
		return err
	}
	if v, ok := providers.As[providers.Vetter](m.Provider); ok {
		return v.Vet(spec)
	}
	return nil
}

// Labelled reads every sandbox of one profile that carries all of these labels,
// exactly, whatever its state except ended. It is complete or an error, never a
// part. No labels are fault.KindUsage: that would be everything. A profile that
// cannot create is fault.KindUnsupported: sbx has labelled nothing there, so an
// empty answer would prove nothing.
//
// A listing may lag behind: what was made a moment ago may be missing yet.
func (f *Fleet) Labelled(ctx context.Context, profile string, labels map[string]string) ([]sandbox.Sandbox, error) {
	if len(labels) == 0 {
		return nil, fault.Usage("no label to look for").At(profile, "list")
	}
	m, _, err := able[providers.Launcher](f, profile, "create")
	if err != nil {
		return nil, err
	}
	var found []sandbox.Sandbox
	for s, err := range watched(ctx, m, "list", func(ctx context.Context) iter.Seq2[sandbox.Sandbox, error] {
		return m.rows(ctx, providers.Query{Labels: labels})
	}) {
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return each(found, func(s sandbox.Sandbox) bool { return !s.State.Ended() && carries(s, labels) }), nil
}

// Marked finds what a create has made that was not answered.
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

// carries holds the labels against those that were asked for: a provider may list
// more than that.
func carries(s sandbox.Sandbox, labels map[string]string) bool {
	for key, want := range labels {
		if got, ok := s.Labels[key]; !ok || got != want {
			return false
		}
	}
	return true
}
