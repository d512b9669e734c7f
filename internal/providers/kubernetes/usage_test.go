package kubernetes_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

const metricsRoute = "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods"

// The usage of many is one list of samples and one of pods, and says what the read of each says.
func TestUsageOfManyIsTwoRequests(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "all kinds", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		claim := f.Add(kubernetestest.Seed{Kind: "claim"})
		f.Add(kubernetestest.Seed{Kind: "sandbox", Owner: claim})
		ids := []string{f.Add(kubernetestest.Seed{}), f.Add(kubernetestest.Seed{Kind: "job"}), f.Add(kubernetestest.Seed{Kind: "sandbox"}), f.Add(kubernetestest.Seed{Sidecar: true}), claim}
		for i, id := range ids {
			f.Show(id, kubernetestest.Figures{CPUPercent: float64(10 * i), MemoryMiB: 50, LimitMiB: 100})
		}
		ids = append(ids, f.Add(kubernetestest.Seed{Phase: "Succeeded"}), "pod.nothing.0a1b2c3d", "no id")
		c := dialed(t, f)
		defer c.Close()
		pass(time.Second)
		before := len(f.Calls(""))
		found, err := c.UsageOfMany(t.Context(), ids)
		require.NoError(t, err)
		assert.Equal(t, 2, len(f.Calls(""))-before)
		require.Len(t, found, 5)
		for _, id := range ids[:5] {
			alone, err := c.Usage(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, alone, found[id])
			assert.EqualValues(t, 100<<20, *found[id].MemoryLimitBytes)
		}
	})
}

// What the list lacks, and what is not of the present, is missing from the answer, so that it is read by itself.
func TestUsageOfManyThatIsNotOfThePresent(t *testing.T) {
	t.Parallel()
	edit := func(old, now string) func(*kubernetestest.Fake, string) {
		return func(f *kubernetestest.Fake, _ string) {
			f.Break(wiretest.Fault{Route: "GET " + metricsRoute, Edit: func(body []byte) []byte {
				return bytes.Replace(body, []byte(old), []byte(now), 1)
			}})
		}
	}
	const second = `{"containers":[{"name":"main","usage":{"cpu":"0","memory":"1Mi"}}],"metadata":{"name":"agent","namespace":"agents"},"timestamp":"2000-01-01T00:00:00Z","window":"15s"}`
	for name, tc := range map[string]struct {
		o      kubernetestest.Options
		change func(f *kubernetestest.Fake, id string)
		alone  bool // the read of it alone has an answer
	}{
		"no sample":            {kubernetestest.Options{}, func(f *kubernetestest.Fake, id string) { f.Unsample(id) }, true},
		"an old sample":        {kubernetestest.Options{Scrape: 10 * time.Minute}, func(*kubernetestest.Fake, string) {}, true},
		"an earlier pod":       {kubernetestest.Options{Scrape: 20 * time.Second}, func(f *kubernetestest.Fake, id string) { f.Replace(id) }, false},
		"another namespace":    {kubernetestest.Options{}, edit(`"namespace":"agents"`, `"namespace":"others"`), true},
		"another name":         {kubernetestest.Options{}, edit(`"name":"agent"`, `"name":"another"`), true},
		"a name twice":         {kubernetestest.Options{}, edit(`"items":[`, `"items":[`+second+","), true},
		"no time":              {kubernetestest.Options{}, edit(`"timestamp":"`, `"stamp":"`), true},
		"of the future":        {kubernetestest.Options{}, edit(`"timestamp":"20`, `"timestamp":"30`), true},
		"no main container":    {kubernetestest.Options{}, edit(`"name":"main"`, `"name":"other"`), true},
		"no processor":         {kubernetestest.Options{}, edit(`"cpu":`, `"gpu":`), true},
		"no quantity":          {kubernetestest.Options{}, edit(`"cpu":"`, `"cpu":"many`), true},
		"below nothing":        {kubernetestest.Options{}, edit(`"cpu":"`, `"cpu":"-`), true},
		"a row that is a word": {kubernetestest.Options{}, edit(`"items":[`, `"items":["agent",`), true},
		"no rows":              {kubernetestest.Options{}, edit(`"items"`, `"rows"`), true},
		"its deletion":         {kubernetestest.Options{LostNode: true}, func(f *kubernetestest.Fake, id string) { f.End(id) }, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			tc.o.Virtual = true
			f := kubernetestest.New(t, tc.o)
			pass(5 * time.Minute)
			id := f.Add(kubernetestest.Seed{Name: "agent", Age: time.Hour})
			c := dialed(t, f)
			defer c.Close()
			found, err := c.UsageOfMany(t.Context(), []string{id, "pod.other.0a1b2c3d"})
			require.NoError(t, err)
			if tc.o.Scrape < time.Minute {
				require.Len(t, found, 1, "before")
			}
			tc.change(f, id)
			found, _ = c.UsageOfMany(t.Context(), []string{id, "pod.other.0a1b2c3d"})
			if strings.Contains(name, "a row") { // the others are given
				assert.Len(t, found, 1)
			} else {
				assert.Empty(t, found)
			}
			_, err = c.Usage(t.Context(), id)
			assert.Equal(t, tc.alone, err == nil, "%v", err)
		})
	}
}

// Where samples are not listed, each is read by itself.
func TestUsageOfManyWithoutTheList(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]kubernetestest.Options{"no metrics server": {NoMetrics: true}, "no right to list": {Refuse: []string{"list pods.metrics.k8s.io"}}} {
		bubble.Run(t, name, func(t *testing.T) {
			o.Virtual = true
			f := kubernetestest.New(t, o)
			var refs []sandbox.Ref
			for range 5 {
				refs = append(refs, sandbox.Ref{Provider: "prod", ID: f.Add(kubernetestest.Seed{})})
			}
			c := dialed(t, f)
			defer c.Close()
			_, err := c.UsageOfMany(t.Context(), []string{refs[0].ID})
			assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "%v", err)
			assert.Empty(t, f.Calls("GET "+podsRoute), "nothing else is asked then")
			for round := range fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{}).Samples(t.Context(), refs, 1, time.Second) {
				for _, s := range round.Samples {
					assert.Equal(t, o.NoMetrics, s.Err != nil, "%v", s.Err)
				}
			}
		})
	}
}

// An API that is down is no metrics server that is missing.
func TestUsageOfManyFromAnAPIThatIsDown(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "503", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		id := f.Add(kubernetestest.Seed{})
		c := dialed(t, f)
		defer c.Close()
		f.Break(wiretest.Fault{Route: "GET " + metricsRoute, Status: http.StatusServiceUnavailable, Body: "service unavailable"})
		found, err := c.UsageOfMany(t.Context(), []string{id})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.Empty(t, found)
	})
}

// Pages are read to their end, unless they would be more requests than to read each sandbox.
func TestPagesOfUsage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		page, metrics, of int // rows of a page, and how many are asked for
		found, requests   int
	}{
		"a page":               {0, 0, 20, 20, 2},
		"pages of samples":     {0, 5, 20, 20, 4 + 1},
		"pages of pods":        {5, 0, 20, 20, 1 + 4},
		"both":                 {5, 5, 20, 20, 4 + 4},
		"few of many pages":    {2, 0, 3, 3, 1 + 2},
		"two of pages of each": {2, 2, 2, 1, 2 + 1}, // the pages are in the order of names
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, PageSize: tc.page, MetricsPage: tc.metrics})
			var ids []string
			for range 20 {
				ids = append(ids, f.Add(kubernetestest.Seed{}))
			}
			c := dialed(t, f)
			defer c.Close()
			found, err := c.UsageOfMany(t.Context(), ids[:tc.of])
			require.NoError(t, err)
			assert.Len(t, found, tc.found)
			assert.Len(t, f.Calls(""), tc.requests)
		})
	}
}

// A look at many that work costs two requests, also where some are missing from the list: these are read by themselves.
func TestRequestsOfALookAtMany(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "busy", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		for range 100 {
			f.Show(f.Add(kubernetestest.Seed{}), kubernetestest.Figures{CPUPercent: 80, MemoryMiB: 20, LimitMiB: 100})
		}
		c := dialed(t, f)
		defer c.Close()
		rows := list(t, c)
		before := len(f.Calls(""))
		many := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{})
		var refs []sandbox.Ref
		for _, row := range rows {
			refs = append(refs, row.Ref())
		}
		for round := range many.Samples(t.Context(), refs, 1, time.Second) {
			for _, s := range round.Samples {
				require.NoError(t, s.Err)
				assert.InDelta(t, 80, *s.Usage.CPUPercent, 1)
			}
		}
		assert.Equal(t, 2, len(f.Calls(""))-before, "each of top's rounds")
		f.Unsample(rows[7].ID)
		before = len(f.Calls(""))
		for round := range many.Samples(t.Context(), refs, 1, time.Second) {
			assert.Nil(t, round.Samples[7].Usage.CPUPercent)
		}
		assert.Equal(t, 4, len(f.Calls(""))-before)
		_, ok := providers.As[providers.UsageBatchReader](c)
		assert.True(t, ok)
	})
}
