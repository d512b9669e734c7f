package metrics_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/metrics"
)

func TestGauges(t *testing.T) {
	t.Parallel()
	var s metrics.Set
	s.Gauge("a_seconds", "one\ntwo \\ three", 1.5, metrics.Label{"b", "1"}, metrics.Label{"a", `x"y\z` + "\n"})
	s.Gauge("b", "", 1789000000)
	s.Gauge("a_seconds", "another help", -2, metrics.Label{"a", "other"})
	s.Gauge("a_seconds", "", 3, metrics.Label{"a", "other"})
	s.Gauge("c", "", math.NaN())
	assert.Equal(t, `# HELP a_seconds one\ntwo \\ three
# TYPE a_seconds gauge
a_seconds{a="x\"y\\z\n",b="1"} 1.5
a_seconds{a="other"} 3
# HELP b 
# TYPE b gauge
b 1789000000
# HELP c 
# TYPE c gauge
c NaN
`, s.Text(), "samples of one name stand together, and the same labels again replace")
	got := parsed(t, s.Text())
	assert.Equal(t, "one\ntwo \\ three", got["a_seconds"].GetHelp())
	assert.Equal(t, map[string]string{"a": `x"y\z` + "\n", "b": "1"}, labelsOf(got["a_seconds"].GetMetric()[0]))
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	var s metrics.Set
	s.Histogram("age_seconds", "Ages.", []float64{60, 300}, []float64{60, 61, 299.5, 4000}, metrics.Label{"provider", "prod"})
	s.Histogram("age_seconds", "Ages.", []float64{60, 300}, nil, metrics.Label{"provider", "none"})
	s.Gauge("age_seconds", "not what it was", 7)
	got := parsed(t, s.Text())["age_seconds"]
	require.Len(t, got.GetMetric(), 2, "a name keeps its kind")
	h := got.GetMetric()[0].GetHistogram()
	assert.EqualValues(t, 4, h.GetSampleCount())
	assert.InDelta(t, 4420.5, h.GetSampleSum(), 1e-9)
	var bounds, counts []float64
	for _, b := range h.GetBucket() {
		bounds, counts = append(bounds, b.GetUpperBound()), append(counts, float64(b.GetCumulativeCount()))
	}
	assert.Equal(t, []float64{60, 300, math.Inf(1)}, bounds)
	assert.Equal(t, []float64{1, 3, 4}, counts, "a bound belongs to its bucket, and buckets hold those below")
	assert.Zero(t, got.GetMetric()[1].GetHistogram().GetSampleCount())
}

func TestNamesThatNoParserTakes(t *testing.T) {
	t.Parallel()
	var s metrics.Set
	s.Gauge("1 a-b", "", 1, metrics.Label{"x:y", "1"}, metrics.Label{"é", "2"}, metrics.Label{"", "3"})
	s.Gauge("job:rate", "", 1)
	assert.Contains(t, s.Text(), `_1_a_b{_="3",x_y="1"} 1`)
	assert.Len(t, parsed(t, s.Text()), 2)
}

func TestTheEmptySet(t *testing.T) {
	t.Parallel()
	assert.Empty(t, metrics.Set{}.Text())
}

// FuzzLabels holds that any text comes back as it was: no value ends its line,
// its quotes or its sample.
func FuzzLabels(f *testing.F) {
	for _, seed := range []string{"", "a", `"`, `\`, `\"`, "\n", "a\nb 1\n", "{}", "\x00\x1b[31m", "\r\n", "\xff", "é🙂", `\n`, "# TYPE a counter\n"} {
		f.Add(seed, seed, 1.5)
	}
	f.Fuzz(func(t *testing.T, value, help string, number float64) {
		var s metrics.Set
		s.Gauge("a", help, number, metrics.Label{"l", value}, metrics.Label{"m", "fixed"})
		got := parsed(t, s.Text())
		require.Len(t, got, 1)
		require.Len(t, got["a"].GetMetric(), 1)
		m := got["a"].GetMetric()[0]
		want := strings.ToValidUTF8(value, "\uFFFD")
		require.Equal(t, map[string]string{"l": want, "m": "fixed"}, labelsOf(m))
		require.True(t, utf8.ValidString(s.Text()))
		if !math.IsNaN(number) {
			require.Equal(t, number, m.GetGauge().GetValue()) //nolint:testifylint // the shortest form reads back exactly
		}
	})
}

// FuzzNames holds that a file stays readable whatever a name is.
func FuzzNames(f *testing.F) {
	f.Add("a", "b")
	f.Add("0", "__name__")
	f.Add("é\n", "le")
	f.Add("a", "quantile")
	f.Fuzz(func(t *testing.T, name, label string) {
		var s metrics.Set
		s.Gauge(name, "", 1, metrics.Label{label, "x"})
		require.Len(t, parsed(t, s.Text()), 1)
	})
}
