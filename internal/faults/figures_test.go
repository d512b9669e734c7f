package faults_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/wiretest"
)

// TestFiguresThatCannotBe: a start in 1970 is no age, and a negative amount of memory is none.
func TestFiguresThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, open := range clouds() {
		bubble.Run(t, name, func(t *testing.T) {
			c := open(t)
			c.server.Break(wiretest.Fault{Edit: func(body []byte) []byte {
				var whole any
				if json.Unmarshal(body, &whole) != nil {
					return body
				}
				text, _ := json.Marshal(absurd(whole, "")) // it was JSON
				return text
			}})
			s, err := c.p.Get(t.Context(), c.id)
			require.NoError(t, err)
			noAge(t, s)
			for s, err := range c.p.List(t.Context(), providers.Query{}) {
				require.NoError(t, err)
				noAge(t, s)
			}
			if reader, ok := c.p.(providers.UsageReader); ok && name != "vercel" { // there it is a command's output
				u, err := reader.Usage(t.Context(), c.id)
				require.NoError(t, err)
				assert.Nil(t, u.MemoryBytes)
				assert.Nil(t, u.CPUPercent)
			}
			c.server.Heal()
			if closer, ok := c.p.(interface{ Close() }); ok {
				closer.Close()
			}
		})
	}
}

func noAge(t *testing.T, s sandbox.Sandbox) {
	t.Helper()
	age, source := s.Age(time.Now())
	assert.Equal(t, sandbox.AgeUnknown, source, "it is %s old", age)
	_, idle := s.Idle(time.Now())
	assert.False(t, idle)
}

// absurd replaces times by the beginning of Unix time, and figures by negative ones.
func absurd(v any, key string) any {
	low := strings.ToLower(key)
	switch held := v.(type) {
	case map[string]any:
		for k, inner := range held {
			held[k] = absurd(inner, k)
		}
	case []any:
		for i, inner := range held {
			held[i] = absurd(inner, key)
		}
	case string:
		switch {
		case strings.HasSuffix(low, "at"), strings.HasSuffix(low, "timestamp"), low == "starttime", low == "created":
			return "1970-01-01T00:00:01Z"
		case low == "cpu", low == "memory": // quantities of Kubernetes
			return "-9007199254740992"
		}
	case float64:
		switch {
		case strings.HasSuffix(low, "at"), low == "created":
			return 1000
		case low == "age_minutes":
			return 29_670_000.5
		case strings.Contains(low, "mem"), strings.Contains(low, "cpu"), low == "usage":
			return -9007199254740992
		}
	}
	return v
}
