package vercel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/verceltest"
)

func keepIt(labels map[string]string) { sandbox.SetKeep(labels, "true") }

// TestASixthTagIsRefusedBeforeTheRequest: the API takes five.
func TestASixthTagIsRefusedBeforeTheRequest(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	id := f.Add(verceltest.Seed{Tags: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}})
	_, err := open(t, f.Listen(), httpx.Net{}).EditLabels(t.Context(), id, keepIt)
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "%v", err)
	assert.Zero(t, f.Changes())
}

// TestTagsBelongToTheCurrentSession: those of an earlier one would protect another sandbox.
func TestTagsBelongToTheCurrentSession(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	before := f.Add(verceltest.Seed{Name: "box", Persistent: true, Status: "stopped"})
	now := f.Resume("box")
	c := open(t, f.Listen(), httpx.Net{})
	_, err := c.EditLabels(t.Context(), before, keepIt)
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
	assert.Contains(t, fault.HintOf(err), now)
	assert.Empty(t, f.Calls("PATCH /v2/sandboxes/{name}"))
	_, err = c.EditLabels(t.Context(), now, keepIt)
	require.NoError(t, err)
}
