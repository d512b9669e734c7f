package fleet_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// besideAnother is a provider at which another client writes labels after each edit.
type besideAnother struct {
	*fake.Provider

	writes func()
}

func (b besideAnother) EditLabels(ctx context.Context, id string, edit func(map[string]string)) (map[string]string, error) {
	written, err := b.Provider.EditLabels(ctx, id, edit)
	b.writes()
	return written, err
}

// TestALabelOfAnotherClientIsNotLostSilently: an API replaces all labels, so that of two writers the second drops
// what the first has changed.
func TestALabelOfAnotherClientIsNotLostSilently(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		other map[string]string // all labels, as another client writes them
		want  []string
	}{
		"nobody":         {map[string]string{"team": "a", "sbx/keep": "true"}, nil},
		"another value":  {map[string]string{"team": "b", "sbx/keep": "true"}, []string{"team"}},
		"one more":       {map[string]string{"team": "a", "sbx/keep": "true", "x": ""}, []string{"x"}},
		"ours was lost":  {map[string]string{"team": "a"}, []string{"sbx/keep"}},
		"all were taken": {nil, []string{"sbx/keep", "team"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fake.New(fake.Options{Name: "prod"})
			id := p.Add(fake.Seed{Sandbox: sandbox.Sandbox{Labels: map[string]string{"team": "a"}}})[0]
			f := fleet.New([]fleet.Member{{Provider: besideAnother{p, func() {
				p.Change(id, func(s *sandbox.Sandbox) { s.Labels = tc.other })
			}}}}, fleet.Options{})
			edit, err := f.EditLabels(t.Context(), sandbox.Ref{Provider: "prod", ID: id}, func(l map[string]string) { l["sbx/keep"] = "true" })
			require.NoError(t, err)
			assert.Equal(t, tc.want, edit.Differ)
		})
	}
}

// TestAnEditThatNoReadConfirmsIsNotVerified.
func TestAnEditThatNoReadConfirmsIsNotVerified(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod"})
	id := p.Add(fake.Seed{})[0]
	p.Break(fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindUnavailable, "503")})
	f := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{})
	_, err := f.EditLabels(t.Context(), sandbox.Ref{Provider: "prod", ID: id}, func(l map[string]string) { l["a"] = "b" })
	assert.Equal(t, fault.KindUnverified, fault.KindOf(err), "%v", err)
}
