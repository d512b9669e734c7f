package daytona_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/wiretest"
)

// TestAnAbsenceAfterARefusalIsNoAcknowledgement: a 404 after a refused delete may be a failure of
// the API.
func TestAnAbsenceAfterARefusalIsNoAcknowledgement(t *testing.T) {
	t.Parallel()
	f := daytonatest.New(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	c := open(t, f.Listen(), httpx.Net{})
	f.Break(wiretest.Fault{Route: "DELETE /api/sandbox/{id}", Status: http.StatusConflict, Body: `{"message":"Sandbox state change in progress"}`},
		wiretest.Fault{Route: "GET /api/sandbox/{id}", Past: "DELETE /api/sandbox/{id}", Status: http.StatusNotFound, Body: `{"message":"Sandbox with ID or name X not found"}`})
	err := c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true})
	require.Error(t, err)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
}

// TestACreateThatFailedToStartMayHaveMadeASandbox: it exists in state error and is billed until it
// is deleted.
func TestACreateThatFailedToStartMayHaveMadeASandbox(t *testing.T) {
	t.Parallel()
	f := daytonatest.New(t, daytonatest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	f.Break(wiretest.Fault{Route: "POST /api/sandbox", Status: http.StatusBadRequest, Body: `{"statusCode":400,"message":"Sandbox failed to start: Timeout while starting sandbox"}`})
	_, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"true"}})
	require.Error(t, err)
	require.NotErrorIs(t, err, providers.ErrNothingMade)
	assert.Contains(t, fault.HintOf(err), sandbox.LabelNonce)
}
