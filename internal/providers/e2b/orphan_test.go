package e2b_test

import (
	"context"
	"io"
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

// TestAnAnswerAboutAnother: GET of one answers with the record of the other.
func TestAnAnswerAboutAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := e2btest.New(t, e2btest.Options{})
		id, other := f.Add(e2btest.Seed{}), f.Add(e2btest.Seed{})
		f.Break(wiretest.Fault{Route: "GET /sandboxes/{id}", Contains: id, Other: other})
		client := &http.Client{Transport: &http.Transport{DialContext: f.Dial}}
		defer client.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://e2b/sandboxes/"+id, nil)
		require.NoError(t, err)
		req.Header.Set("X-Api-Key", e2btest.Key)
		res, err := client.Do(req)
		require.NoError(t, err)
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Contains(t, string(text), other)
		assert.NotContains(t, string(text), id)
	})
}

func dialled(t wiretest.T, f *e2btest.Fake) *e2b.Client {
	t.Helper()
	p, err := e2b.Type().Open(context.Background(), providers.Profile{Name: "prod", Settings: e2btest.Settings("http://e2b")},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
	require.NoError(t, err)
	c, ok := p.(*e2b.Client)
	require.True(t, ok)
	t.Cleanup(c.Close)
	return c
}
