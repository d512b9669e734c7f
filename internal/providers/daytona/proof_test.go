package daytona_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/wiretest"
)

// TestNoListIsNoProof: a failed sandbox whose delete hangs is 404 and in one list only; where that
// list cannot be read, nothing is proved.
func TestNoListIsNoProof(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"the list": "", "{}": "{}", "null": "null", "no items": `{"items":null}`, "an error": `{"error":"Internal Server Error","statusCode":500}`,
		"a row without id": `{"items":[{"state":"error"}]}`, "a row of null": `{"items":[null]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, c := fresh(t, daytonatest.Options{Hides: true})
			id := f.Add(daytonatest.Seed{})
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
			if body != "" {
				f.Break(wiretest.Fault{Route: "GET /api/sandbox", Status: 200, Body: body})
			}
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true, Since: time.Now().Add(-time.Minute), Now: time.Now()})
			assert.Equal(t, body != "", err != nil, "%v", err)
			assert.NotEqual(t, sandbox.True, proof.Ended, "its runner may still hold it")
		})
	}
}
