package e2b_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

func TestTheUsageOfManyIsOneRequest(t *testing.T) {
	t.Parallel()
	readUsageOfMany(t, wiretest.Options{})
}

func readUsageOfMany(t *testing.T, wire wiretest.Options) {
	t.Helper()
	fake := e2btest.New(t, e2btest.Options{Wire: wire})
	p, _ := providers.As[providers.UsageBatchReader](open(t, fake, e2b.Type()))
	id, other, paused := fake.Add(e2btest.Seed{}), fake.Add(e2btest.Seed{}), fake.Add(e2btest.Seed{Paused: true})
	fake.Use(other, 40)
	found, err := p.UsageOfMany(t.Context(), []string{id, other, paused, "iunknown"})
	require.NoError(t, err)
	require.Len(t, found, 2, "what has no sample is missing")
	assert.InDelta(t, 25, *found[id].CPUPercent, 0, "of one core; the machine has two")
	assert.InDelta(t, 80, *found[other].CPUPercent, 0)
	assert.Len(t, fake.Calls(""), 1)
}

// TestALogWithoutAProgramIsOneRequest: the record would only say whether create started one.
func TestALogWithoutAProgramIsOneRequest(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{})
	p, _ := providers.As[providers.LogReader](open(t, fake, e2b.Type()))
	id := fake.Add(e2btest.Seed{})
	for _, err := range p.Logs(t.Context(), id, providers.LogQuery{Tail: 5, NoProgram: true}) {
		require.NoError(t, err)
	}
	assert.Len(t, fake.Calls(""), 1)
}

// TestAnOldSampleIsNoPresentOne: the metrics of a sandbox may have stopped an hour ago.
func TestAnOldSampleIsNoPresentOne(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{Now: func() time.Time { return time.Now().Add(-10 * time.Minute) }})
	p, _ := providers.As[providers.UsageBatchReader](open(t, fake, e2b.Type()))
	found, err := p.UsageOfMany(t.Context(), []string{fake.Add(e2btest.Seed{})})
	require.NoError(t, err)
	assert.Empty(t, found)
}

// TestOldSamplesAreNoPresentUsage: an API that ignores the range, or lags, shows nothing of now; envd is asked instead.
// Both dialects.
func TestOldSamplesAreNoPresentUsage(t *testing.T) {
	t.Parallel()
	for _, legacy := range []bool{false, true} {
		for _, ago := range []time.Duration{59 * time.Second, time.Hour} {
			kind := e2b.Type()
			if legacy {
				kind = e2b.NovitaType()
			}
			fake := e2btest.New(t, e2btest.Options{Novita: legacy, Legacy: legacy})
			id := fake.Add(e2btest.Seed{})
			rows := make([]string, 0, 60)
			for n := range 60 {
				at := time.Now().Add(-ago - time.Duration(60-n)*5*time.Second)
				row := fmt.Sprintf(`{"timestamp":%q,"timestampUnix":%d,"cpuCount":2,"cpuUsedPct":60}`, at.Format(time.RFC3339), at.Unix())
				if legacy {
					row = fmt.Sprintf(`{"timestamp":%q,"cpuCount":2,"cpuUsedPct":60}`, at.Format(time.RFC3339))
				}
				rows = append(rows, row)
			}
			fake.Break(wiretest.Fault{Route: "GET /sandboxes/{id}/metrics", Status: http.StatusOK, Body: "[" + strings.Join(rows, ",") + "]"})
			p := open(t, fake, kind)
			c, _ := providers.As[providers.UsageReader](p)
			history, ok := providers.As[providers.UsageHistoryReader](p)
			require.True(t, ok)
			u, err := c.Usage(t.Context(), id)
			if err == nil {
				assert.NotEqual(t, "metrics API", u.Source, ago)
			}
			kept, err := history.UsageHistory(t.Context(), id, time.Now().Add(-6*time.Minute))
			require.NoError(t, err)
			assert.Equal(t, ago == time.Hour, len(kept) == 0, "what lies outside of the range is none of it")
		}
	}
}

func TestWithoutBulkMetricsTheUsageOfManyIsUnsupported(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]e2btest.Options{"novita": {Novita: true}, "no metrics": {NoMetrics: true}} {
		kind := e2b.Type()
		if o.Novita {
			kind = e2b.NovitaType()
		}
		fake := e2btest.New(t, o)
		p, ok := providers.As[providers.UsageBatchReader](open(t, fake, kind))
		require.True(t, ok, name)
		_, err := p.UsageOfMany(t.Context(), []string{fake.Add(e2btest.Seed{})})
		assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), name)
	}
}

// TestAMissingRouteIsNotAskedForEverySandbox, while an id that nobody knows is no proof.
func TestAMissingRouteIsNotAskedForEverySandbox(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{NoMetrics: true})
	p := open(t, fake, e2b.Type())
	history, _ := providers.As[providers.UsageHistoryReader](p)
	for range 10 {
		_, err := history.UsageHistory(t.Context(), "iunknown", time.Now())
		assert.Equal(t, fault.KindUnsupported, fault.KindOf(err))
	}
	assert.Len(t, fake.Calls("GET /sandboxes/{id}/metrics"), 10, "a 404 that names the sandbox is about that alone")
	for range 10 {
		_, err := history.UsageHistory(t.Context(), fake.Add(e2btest.Seed{}), time.Now())
		assert.Equal(t, fault.KindUnsupported, fault.KindOf(err))
	}
	assert.Len(t, fake.Calls("GET /sandboxes/{id}/metrics"), 13)
}

// TestLooksThatBeginTogetherShareTheRecord, and a later look reads it again.
func TestLooksThatBeginTogetherShareTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := e2btest.New(t, e2btest.Options{Wire: wiretest.Options{Latency: 20 * time.Millisecond}})
		p, err := e2b.Type().Open(t.Context(), providers.Profile{Name: "prod", Type: "e2b", Settings: e2btest.Settings("http://api.example")},
			providers.Deps{Now: time.Now, Net: httpx.Net{Agent: "sbx/test", Dial: fake.Dial}})
		require.NoError(t, err)
		defer closeProvider(p)
		c, _ := p.(*e2b.Client)
		id := fake.Add(e2btest.Seed{})
		look := func() {
			var both sync.WaitGroup
			both.Go(func() {
				for _, err := range c.Logs(t.Context(), id, providers.LogQuery{Tail: 5}) {
					assert.NoError(t, err)
				}
			})
			both.Go(func() {
				_, err := c.Processes(t.Context(), id)
				assert.NoError(t, err)
			})
			both.Wait()
		}
		look()
		assert.Len(t, fake.Calls("GET /sandboxes/{id}"), 1)
		<-time.After(time.Second)
		look()
		assert.Len(t, fake.Calls("GET /sandboxes/{id}"), 2)
		_, err = c.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Len(t, fake.Calls("GET /sandboxes/{id}"), 3, "a read that verifies is its own")
	})
}

func closeProvider(p providers.Provider) {
	if c, ok := p.(interface{ Close() }); ok {
		c.Close()
	}
}
