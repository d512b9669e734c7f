package daytona_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/wiretest"
)

func keepIt(labels map[string]string) { sandbox.SetKeep(labels, "true") }

// TestAKeyWithoutTheRightToWriteLabelsIsNamed by the permission that it lacks.
func TestAKeyWithoutTheRightToWriteLabelsIsNamed(t *testing.T) {
	t.Parallel()
	f := daytonatest.New(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	f.Break(wiretest.Fault{Route: "PUT /api/sandbox/{id}/labels", Status: http.StatusForbidden, Body: `{"statusCode":403,"message":"Forbidden resource"}`})
	_, err := open(t, f.Listen(), httpx.Net{}).EditLabels(t.Context(), id, keepIt)
	assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
	assert.Contains(t, fault.HintOf(err), "write:sandboxes")
}

// TestNothingIsWrittenWhereNothingChanges.
func TestNothingIsWrittenWhereNothingChanges(t *testing.T) {
	t.Parallel()
	f := daytonatest.New(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{Labels: map[string]string{sandbox.LabelKeep: "true"}})
	_, err := open(t, f.Listen(), httpx.Net{}).EditLabels(t.Context(), id, keepIt)
	require.NoError(t, err)
	assert.Zero(t, f.Changes())
}
