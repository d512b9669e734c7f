package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// operator is the file of an operator who sets most of what there is.
const operator = `providers:
  prod: {type: cloud, token: a}
  test: {type: cloud, token: b}
use: [prod, here]
launch: here
production: [prod]
protect: {labels: {keep: "true", Sbx.io/Keep: "\u00a0"}, ids: [one]}
limits: {max_delete: 5, request_timeout: 30s}
run: {deadline: 30m, attempts: 2}
`

// TestExplain renders all values of a full world against a golden.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user(operator)
	w.env = append(w.env, "CLOUD_KEY=s3cret", "HERE_MEMORY=2G", "SBX_NO_COLOR=1",
		"AGENT_TIMEOUT=60500", "SANDBOX_MEMORY_GB=4", "SANDBOX_CPU=two", "ENABLE_HEALTH_PROBE=0", "CALLBACK_URL=https://me:s3c1@h.example/x?t=s3c2")
	w.flags["attempt-timeout"] = "9m"
	w.flags["max-fraction"], w.flags["provider"] = "50%", "here,cloud"
	var b strings.Builder
	for _, v := range w.must().Values() {
		b.WriteString(v.Key + "\t" + v.Value + "\t" + v.Origin + "\n")
	}
	got := w.short(b.String())
	if *update {
		require.NoError(t, os.WriteFile("testdata/explain.golden", []byte(got), 0o600))
	}
	want, err := os.ReadFile("testdata/explain.golden")
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
	assert.NotContains(t, got, "s3c")
}

func TestEveryOptionIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=a", "FAR_URL=b")
	c := w.must()
	for _, kind := range testTypes() {
		if kind.Attach != nil {
			continue // it is there only where a file has it
		}
		for _, o := range kind.Options {
			assert.NotEqual(t, "no such key", w.origin(c, optionKey(kind.Name, o.Name)))
		}
	}
	for _, v := range c.Values() {
		assert.NotEmpty(t, v.Origin, v.Key)
	}
}

func TestValuesAreACopy(t *testing.T) {
	t.Parallel()
	c := newWorld(t).must()
	c.Values()[0].Value = "changed"
	assert.NotEqual(t, "changed", c.Values()[0].Value)
}

func TestPasswordInAURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "",
		"https://h/p":          "https://h/p",
		"https://me@h":         "https://me@h",
		"https://me:pw@h/p":    "https://me:********@h/p",
		"https://me:p@w@h/p":   "https://me:********@h/p",
		"https://:pw@h":        "https://:********@h",
		"https://h/a:b@c":      "https://h/a:b@c",
		"me:pw@h":              "me:pw@h",
		"postgres://u:a:b@h/d": "postgres://u:********@h/d",
	} {
		assert.Equal(t, want, withoutPassword(text))
	}
}
