package fake_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

func five(o fake.Options) *fake.Provider {
	o.PageSize = 2
	p := fake.New(o)
	p.Add(make([]fake.Seed, 5)...)
	return p
}

func list(ctx context.Context, p providers.Provider) (ids []string, errs []error) {
	for s, err := range p.List(ctx, providers.Query{}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, s.ID)
	}
	return ids, errs
}

func TestPagesFailByPlan(t *testing.T) {
	t.Parallel()
	planted := fault.New(fault.KindUnavailable, "planted")
	for name, tc := range map[string]struct {
		fault     fake.Fault
		ids, errs int
	}{
		"none":               {fake.Fault{Op: fake.OpGet, Err: planted}, 5, 0},
		"first page fails":   {fake.Fault{Op: fake.OpList, Page: 1, Err: planted}, 0, 1},
		"second page fails":  {fake.Fault{Op: fake.OpList, Page: 2, Err: planted}, 2, 1},
		"second page drops":  {fake.Fault{Op: fake.OpList, Page: 2, Skip: true}, 3, 0},
		"any page drops":     {fake.Fault{Op: fake.OpList, Skip: true}, 0, 0},
		"after two requests": {fake.Fault{Op: fake.OpList, After: 2, Err: planted}, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := five(fake.Options{Name: "prod"})
			p.Break(tc.fault)
			ids, errs := list(t.Context(), p)
			assert.Len(t, ids, tc.ids)
			require.Len(t, errs, tc.errs)
			for _, err := range errs {
				require.EqualError(t, err, "prod: list: planted")
			}
			p.Mend()
			ids, errs = list(t.Context(), p)
			assert.Len(t, ids, 5)
			assert.Empty(t, errs)
		})
	}
	assert.Empty(t, planted.Provider, "the planted error is not written to")
}

func TestFaultsCountDown(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	id := p.Add(fake.Seed{})[0]
	p.Break(fake.Fault{Op: fake.OpGet, ID: id, After: 1, Times: 2, Err: fault.New(fault.KindAuth, "planted")})
	var kinds []fault.Kind
	for range 4 {
		_, err := p.Get(t.Context(), id)
		kinds = append(kinds, fault.KindOf(err))
	}
	assert.Equal(t, []fault.Kind{"", fault.KindAuth, fault.KindAuth, ""}, kinds)
	assert.Len(t, p.Calls(fake.OpGet), 4)
	assert.Len(t, p.Calls(), 4)
	assert.Empty(t, p.Calls(fake.OpList))
}

func TestHangAndDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := five(fake.Options{Latency: 20 * time.Millisecond})
		p.Break(fake.Fault{Op: fake.OpList, Page: 1, Delay: 5 * time.Second}, fake.Fault{Op: fake.OpGet, Hang: true})
		began := time.Now()
		for _, err := range p.List(t.Context(), providers.Query{}) {
			require.NoError(t, err)
			break
		}
		assert.Equal(t, 5*time.Second+20*time.Millisecond, time.Since(began), "a slow first item")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		_, err := p.Get(ctx, "any")
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
		assert.Equal(t, time.Minute, time.Since(began))
	})
}

func TestLateErrorsHideAnEffect(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	id := p.Add(fake.Seed{})[0]
	lost := fault.New(fault.KindUnavailable, "the answer was lost")
	p.Break(fake.Fault{Op: fake.OpTerminate, Err: lost, Late: true}, fake.Fault{Op: fake.OpCreate, Err: lost, Late: true})
	require.ErrorContains(t, p.Terminate(t.Context(), id, providers.TerminateOptions{}), "lost")
	assert.Equal(t, sandbox.StateTerminated, state(t, p, id))
	_, err := p.Create(t.Context(), sandbox.Spec{})
	require.ErrorContains(t, err, "lost")
	ids, _ := list(t.Context(), p)
	assert.Len(t, ids, 2, "it was created all the same")
}

func TestLiarsRunForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{})
		ids := p.Add(fake.Seed{}, fake.Seed{EndFor: fake.Forever})
		p.Break(fake.Fault{Op: fake.OpTerminate, ID: ids[0], Skip: true})
		for _, id := range ids {
			require.NoError(t, p.Terminate(t.Context(), id, providers.TerminateOptions{}))
		}
		advance(t, 24*time.Hour)
		assert.Equal(t, sandbox.StateRunning, state(t, p, ids[0]))
		assert.Equal(t, sandbox.StateTerminating, state(t, p, ids[1]))
	})
}

func TestListingsFlapAfterAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{After: fake.AfterMissing, Flap: time.Second})
		id := p.Add(fake.Seed{})[0]
		require.NoError(t, p.Terminate(t.Context(), id, providers.TerminateOptions{}))
		var seen []int
		for range 4 {
			ids, _ := list(t.Context(), p)
			seen = append(seen, len(ids))
		}
		assert.Equal(t, []int{1, 0, 1, 0}, seen)
		advance(t, time.Second)
		ids, _ := list(t.Context(), p)
		assert.Empty(t, ids)
	})
}

func TestQueriesNarrow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := fake.New(fake.Options{Now: func() time.Time { return now }})
	p.Add(
		fake.Seed{Sandbox: sandbox.Sandbox{ID: "running", Labels: map[string]string{"team": "a"}}},
		fake.Seed{Sandbox: sandbox.Sandbox{ID: "fresh", State: sandbox.StateFailed, EndedAt: now.Add(-time.Minute)}},
		fake.Seed{Sandbox: sandbox.Sandbox{ID: "old", State: sandbox.StateFailed, EndedAt: now.Add(-2 * time.Hour)}},
	)
	for name, tc := range map[string]struct {
		query providers.Query
		want  string
	}{
		"nothing asked": {providers.Query{}, "running fresh"},
		"all":           {providers.Query{All: true}, "running fresh old"},
		"a state":       {providers.Query{All: true, States: []sandbox.State{sandbox.StateFailed}}, "fresh old"},
		"a label":       {providers.Query{Labels: map[string]string{"team": "a"}}, "running"},
		"no such label": {providers.Query{Labels: map[string]string{"team": ""}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for s, err := range p.List(t.Context(), tc.query) {
				require.NoError(t, err)
				got = append(got, s.ID)
			}
			assert.Equal(t, tc.want, strings.Join(got, " "))
		})
	}
}
