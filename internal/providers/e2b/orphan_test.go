package e2b_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

// TestAnOrphanIsForgottenAndRuns: after a DELETE that the node refused or did not answer, API and
// edge answer as for an ended VM.
func TestAnOrphanIsForgottenAndRuns(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]int{"refused": http.StatusInternalServerError, "no answer": e2btest.NoAnswer} {
		bubble.Run(t, name, func(t *testing.T) {
			f := e2btest.New(t, e2btest.Options{Orphans: answer})
			id, other := f.Add(e2btest.Seed{Left: time.Hour}), f.Add(e2btest.Seed{})
			p := dialled(t, f)
			err := p.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true})
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
			_, err = p.Get(t.Context(), id)
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
			_, err = p.Get(t.Context(), other)
			require.NoError(t, err, "the others are there")
			assert.True(t, f.VMRuns(id), "its VM runs on")
			proof, err := p.VerifyEnd(t.Context(), id, providers.EndQuery{})
			require.NoError(t, err)
			assert.NotEmpty(t, proof.Evidence, "the edge has forgotten it too")
			<-time.After(time.Hour)
			assert.False(t, f.VMRuns(id), "its time is over")
		})
	}
}

// TestADeleteThatFindsNothingProvesNoEnd: a proxy repeats a DELETE whose node has failed, and passes on the second
// answer; another client's may have failed just before.
func TestADeleteThatFindsNothingProvesNoEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := e2btest.New(t, e2btest.Options{Orphans: http.StatusInternalServerError})
		id := f.Add(e2btest.Seed{Left: time.Hour})
		p := dialled(t, f)
		seen, err := p.Get(t.Context(), id)
		require.NoError(t, err)
		f.Break(wiretest.Fault{Route: "DELETE /sandboxes/{id}", Twice: true})
		err = p.Terminate(t.Context(), id, providers.TerminateOptions{Seen: &seen})
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
		require.True(t, f.VMRuns(id))
		asked := &sandbox.EndRequest{At: time.Now(), NotFound: true, ExpiresAt: seen.ExpiresAt}
		for _, r := range []*sandbox.EndRequest{asked, nil} {
			proof, err := p.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now(), Request: r, ExpiresAt: seen.ExpiresAt})
			require.NoError(t, err)
			assert.True(t, proof.SameStore)
			assert.False(t, proof.Independent)
			assert.Equal(t, seen.ExpiresAt, proof.IndependentFrom)
		}
		<-time.After(time.Hour + time.Second)
		proof, err := p.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now(), Request: asked, ExpiresAt: seen.ExpiresAt})
		require.NoError(t, err)
		assert.True(t, proof.Independent, "its own limit has ended it")
		assert.False(t, f.VMRuns(id))
	})
}

func dialled(t wiretest.T, f *e2btest.Fake) *e2b.Client {
	t.Helper()
	c, ok := dialledAs(t, f, e2b.Type()).(*e2b.Client)
	require.True(t, ok)
	t.Cleanup(c.Close)
	return c
}

func dialledAs(t wiretest.T, f *e2btest.Fake, kind providers.Type) providers.Provider {
	t.Helper()
	p, err := kind.Open(context.Background(), providers.Profile{Name: "prod", Settings: e2btest.Settings("http://e2b")},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
	require.NoError(t, err)
	return p
}
