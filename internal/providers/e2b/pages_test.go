package e2b_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

const logRoute = "GET /v2/sandboxes/{id}/logs"

// TestALogOfSeveralPages: the position moves on; one that does not is no end of the log.
func TestALogOfSeveralPages(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{})
	var all []string
	for i := range 2500 {
		all = append(all, fmt.Sprintf("entry %d", i))
	}
	id := f.Add(e2btest.Seed{Logs: all, Age: time.Hour})
	c, ok := open(t, f, e2b.Type()).(*e2b.Client)
	require.True(t, ok)
	assert.Equal(t, all, lines(t, c, id, providers.LogQuery{}))

	f.Break(wiretest.Fault{Route: logRoute, Forget: "cursor"})
	var got []string
	var failed error
	for l, err := range c.Logs(t.Context(), id, providers.LogQuery{}) {
		if failed = err; err == nil {
			got = append(got, l.Text)
		}
	}
	assert.Equal(t, all[:1000], got, "what was read is given")
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(failed))
	require.ErrorContains(t, failed, "there may be more")
}

// TestALogEntryWithAnOddTimeStays: also behind a time from which the log is read.
func TestALogEntryWithAnOddTimeStays(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{})
	id := f.Add(e2btest.Seed{})
	at := time.Now().Truncate(time.Second).UTC()
	f.Break(wiretest.Fault{Route: logRoute, Status: 200, Body: fmt.Sprintf(
		`{"logs":[{"timestamp":%q,"message":"a"},{"timestamp":"noon","message":"b","fields":{"logger":7}},{"timestamp":%q,"message":"c","fields":[]}]}`,
		at.Format(time.RFC3339), at.Add(time.Second).Format(time.RFC3339))})
	c, ok := open(t, f, e2b.Type()).(*e2b.Client)
	require.True(t, ok)
	for _, since := range []time.Time{{}, at.Add(-time.Hour)} {
		assert.Equal(t, []string{"a", "b", "c"}, lines(t, c, id, providers.LogQuery{Since: since}))
	}
}

// TestAnEventWithAnOddIDHidesNoOther tells an odd row apart from the end of the list.
func TestAnEventWithAnOddIDHidesNoOther(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{})
	id := f.Add(e2btest.Seed{})
	f.Break(wiretest.Fault{Route: "GET /events/sandboxes/{id}", Status: 200, Body: `[{"id":"1","type":"sandbox.lifecycle.created","timestamp":"noon"},{"id":2,"type":"x"},{"id":"3","type":"sandbox.lifecycle.killed","eventData":[]}]`})
	c, ok := open(t, f, e2b.Type()).(*e2b.Client)
	require.True(t, ok)
	events, err := c.Events(t.Context(), id)
	require.ErrorContains(t, err, "row 2 of the list is invalid: id must not be of type number")
	assert.Len(t, events, 2)
}
