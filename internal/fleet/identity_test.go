package fleet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAnAnswerAboutAnotherSandboxIsNoAnswer: GET of A answers with the record of B.
// Nothing may be asked of B, and nothing said of A.
func TestAnAnswerAboutAnotherSandboxIsNoAnswer(t *testing.T) {
	t.Parallel()
	listed := sandbox.Sandbox{Provider: "prod", ID: "aaaa", State: sandbox.StateRunning}
	ref := listed.Ref()
	for name, ask := range map[string]func(context.Context, *fleet.Fleet) error{
		"get": func(ctx context.Context, f *fleet.Fleet) error { _, err := f.Get(ctx, ref); return err },
		"find": func(ctx context.Context, f *fleet.Fleet) error {
			got, err := f.Find(ctx, []string{"prod/aaaa"}, fleet.FindOptions{})
			assert.Empty(t, got)
			return err
		},
		"find to end": func(ctx context.Context, f *fleet.Fleet) error {
			got, err := f.Find(ctx, []string{"prod/aaaa"}, fleet.FindOptions{Destructive: true})
			assert.Empty(t, got)
			return err
		},
		"wait": func(ctx context.Context, f *fleet.Fleet) error {
			_, err := f.Wait(ctx, ref, fleet.GoalEnded)
			return err
		},
		"precheck": func(ctx context.Context, f *fleet.Fleet) error {
			got := endThese(ctx, f, fleet.EndOptions{Wait: time.Second}, listed)
			require.Len(t, got, 1)
			assert.Equal(t, sandbox.OutcomeFailed, got[0].Outcome)
			return got[0].Err
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := stocked("prod", "bbbb", "aaaa")
			p.Tell(fake.LieOtherID)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := ask(ctx, of(p))
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, `the answer is about another sandbox, "bbbb"`)
			assert.Empty(t, p.Calls(fake.OpTerminate), "nothing is asked of an id that was not selected")
		})
	}
}

// TestAnEndIsNotSeenInAnotherSandbox: after the request GET answers with the record
// of one that has ended long ago.
func TestAnEndIsNotSeenInAnotherSandbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", EndFor: fake.Forever})
		p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "bbbb", State: sandbox.StateTerminated}}, box("aaaa", ""))
		p.Tell(fake.LieOtherID)
		got := endThese(t.Context(), of(p.Bare()), fleet.EndOptions{Wait: 10 * time.Second, Recheck: unread()}, sandbox.Sandbox{Provider: "prod", ID: "aaaa", State: sandbox.StateRunning})
		require.Len(t, got, 1)
		assert.Equal(t, sandbox.OutcomeAccepted, got[0].Outcome, "%s", got[0].Reason)
		assert.Equal(t, "aaaa", p.Calls(fake.OpTerminate)[0].ID)
	})
}

// spelled is a provider with two spellings of an id, or whose get takes names.
type spelled struct {
	*fake.Provider

	names bool
}

func (spelled) SameID(a, b string) bool { return a == b || a+"-x" == b || a == b+"-x" }

func (s spelled) TakesName(string) bool { return s.names }

func (s spelled) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	switch id {
	case "aaaa", "web":
		id = "aaaa-x"
	}
	return s.Provider.Get(ctx, id)
}

func TestSpellingsOfAnIDAndNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, names := range []bool{false, true} {
			p := spelled{stocked("prod", "aaaa-x"), names}
			var provider providers.Provider = p
			f := of(provider)
			got, err := f.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "aaaa"})
			require.NoError(t, err)
			assert.Equal(t, "aaaa", got.ID, "an id keeps the spelling in which it was selected")
			found, err := f.Find(t.Context(), []string{"prod/web"}, fleet.FindOptions{Destructive: true})
			if names {
				require.NoError(t, err)
				assert.Equal(t, []string{"prod/aaaa-x"}, refs(found))
			} else {
				assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			}
			_, err = f.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "web"})
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "what was selected is an id, never a name")
		}
	})
}

// TestDeadSandboxesDoNotStopTheirEnd: looks into sandboxes that answer nothing, or hang,
// say nothing about the provider, which would end them.
func TestDeadSandboxesDoNotStopTheirEnd(t *testing.T) {
	t.Parallel()
	dead := &fault.Error{Kind: fault.KindUnavailable, OneSandbox: true, Err: errors.New("port is not open")}
	for name, harm := range map[string]fake.Fault{
		"they answer that they are dead": {Op: fake.OpUsage, Err: dead},
		"they answer nothing":            {Op: fake.OpUsage, Hang: true, Err: dead},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p, targets := herd(fake.Options{Name: "prod"}, 30)
			p.Break(harm)
			f := of(scoped{p})
			for _, s := range targets {
				_, err := f.Usage(t.Context(), s.Ref())
				require.Error(t, err)
			}
			got := endThese(t.Context(), f, fleet.EndOptions{}, targets...)
			assert.Equal(t, 30, fleet.Count(got).Verified, "%s", got[0].Reason)
		})
	}
}

// scoped marks every failure of a look inside, as a room does that knows where it asked.
type scoped struct{ *fake.Provider }

func (s scoped) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	u, err := s.Provider.Usage(ctx, id)
	if err != nil {
		err = &fault.Error{Kind: fault.KindOf(err), Provider: "prod", OneSandbox: true, Err: err}
	}
	return u, err
}
