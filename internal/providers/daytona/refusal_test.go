package daytona_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

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

// TestAHintFitsTheRecord: a state that should have ended long ago will not end by itself.
func TestAHintFitsTheRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		passed time.Duration // since it began to start
		hint   string
	}{
		"young": {time.Minute, "the platform ends this state after 5m, at "},
		"old":   {time.Hour, "only Daytona's support can; name "},
	} {
		f := daytonatest.New(t, daytonatest.Options{})
		id := f.Add(daytonatest.Seed{State: "starting", Age: tc.passed})
		c := open(t, f.Listen(), httpx.Net{})
		f.Break(wiretest.Fault{Route: "DELETE /api/sandbox/{id}", Status: http.StatusBadRequest, Body: `{"statusCode":400,"message":"not in a valid state to be destroyed"}`})
		err := c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), name)
		assert.Contains(t, fault.HintOf(err), tc.hint, name)
		assert.Equal(t, name == "old", strings.Contains(fault.HintOf(err), id), name)
	}
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
