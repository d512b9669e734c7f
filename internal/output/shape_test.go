package output

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

type inner struct {
	Deep string `json:"deep,omitempty"`
}

type outer struct {
	inner2
	Plain    string
	OOMKills int
	Tagged   *int64            `json:"tagged"`
	Gone     string            `json:"-"`
	List     []inner           `json:"list"`
	Map      map[string]string `json:"map"`
	At       time.Time         `json:"at"`
	Any      any               `json:"any"`
	hidden   int
}

type inner2 struct {
	Own string `json:"own"`
}

func TestShape(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("CET", 3600)
	for name, tc := range map[string]struct{ in, want any }{
		"nil":              {nil, nil},
		"nil *int64":       {(*int64)(nil), nil},
		"nil *float64":     {(*float64)(nil), nil},
		"nil *struct":      {(*inner)(nil), nil},
		"*int":             {new(7), int64(7)},
		"*float64":         {new(1.5), 1.5},
		"small kinds":      {[]any{int8(1), uint16(2), float32(0.5)}, []any{int64(1), uint64(2), 0.5}},
		"not a number":     {math.NaN(), nil},
		"infinite":         {math.Inf(1), nil},
		"zero time":        {time.Time{}, nil},
		"time in utc":      {time.Date(2026, 3, 1, 13, 0, 0, 120e6, berlin), "2026-03-01T12:00:00.12Z"},
		"*time":            {new(noon()), "2026-03-01T12:00:00Z"},
		"duration":         {1500 * time.Millisecond, 1.5},
		"ref":              {sandbox.Ref{Provider: "p", ID: "i"}, "p/i"},
		"*ref":             {&sandbox.Ref{ID: "i"}, "i"},
		"refs":             {[]sandbox.Ref{{Provider: "p", ID: "i"}}, []any{"p/i"}},
		"verdict":          {sandbox.Unknown, "unknown"},
		"error":            {errors.New("no"), "no"},
		"nil slice":        {[]string(nil), []any{}},
		"nil map":          {map[string]string(nil), Fields{}},
		"array":            {[2]bool{true, false}, []any{true, false}},
		"map sorted":       {map[string]int{"b": 1, "a": 2}, Fields{{"a", int64(2)}, {"b", int64(1)}}},
		"map by number":    {map[int]string{1: "x"}, Fields{{"1", "x"}}},
		"fields":           {Fields{{"z", 1}, {"a", new("x")}}, Fields{{"z", int64(1)}, {"a", "x"}}},
		"marshaler struct": {raw{`{"a":[1,"x"]}`}, Fields{{"a", []any{1.0, "x"}}}},
		"bad marshaler":    {raw{`{`}, nil},
		"failed marshaler": {raw{""}, nil},
		"odd kind":         {complex(1, 2), "(1+2i)"},
		"struct": {
			outer{Plain: "p", OOMKills: 2, List: []inner{{}}, At: noon(), hidden: 1},
			Fields{
				{"plain", "p"},
				{"oom_kills", int64(2)},
				{"tagged", nil},
				{"list", []any{Fields{{"deep", ""}}}},
				{"map", Fields{}},
				{"at", "2026-03-01T12:00:00Z"},
				{"any", nil},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, shapeValue(tc.in))
		})
	}
}

// raw answers MarshalJSON with its text.
type raw struct{ text string }

func (r raw) MarshalJSON() ([]byte, error) {
	if r.text == "" {
		return nil, errors.New("refused")
	}
	return []byte(r.text), nil
}

func TestEmbeddedFieldsComeUp(t *testing.T) {
	t.Parallel()
	type Embedded struct{ A, B int }
	type whole struct {
		Embedded
		C int
	}
	assert.Equal(t, Fields{{"a", int64(1)}, {"b", int64(2)}, {"c", int64(3)}}, shapeValue(whole{Embedded{1, 2}, 3}))
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   time.Duration
		want float64
	}{{0, 0}, {time.Second, 1}, {1234567, 0.001}, {90 * time.Minute, 5400}, {2500 * time.Millisecond, 2.5}, {-time.Second, -1}} {
		assert.InDelta(t, tc.want, Seconds(tc.in), 1e-12, tc.in)
	}
}

func TestMiB(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   *int64
		want any
	}{
		"unknown":  {nil, nil},
		"zero":     {new(int64(0)), int64(0)},
		"whole":    {new(int64(512 << 20)), int64(512)},
		"tenths":   {new(int64(1<<20 + 1<<19)), 1.5},
		"rounded":  {new(int64(1<<20 + 100)), int64(1)},
		"small":    {new(int64(100 << 10)), 0.1},
		"negative": {new(int64(-1 << 19)), -0.5},
	} {
		assert.Equal(t, tc.want, shapeValue(MiB(tc.in)), name)
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	assert.Nil(t, Time(time.Time{}))
	assert.Equal(t, noon(), *Time(noon().In(time.FixedZone("", 3600))))
}

func TestSnake(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"At": "at", "OOMKills": "oom_kills", "MemoryBytes": "memory_bytes", "ID": "id", "": ""} {
		assert.Equal(t, want, snakeCase(in))
	}
}
