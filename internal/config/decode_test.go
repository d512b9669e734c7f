package config

import (
	"cmp"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func decoded(t *testing.T, content string) *document {
	t.Helper()
	doc, errs := decodeFile("/c.yaml", []byte(content), testTypes())
	require.NoError(t, errors.Join(errs...))
	return doc
}

func at(line, column, width int) position { return position{Line: line, Column: column, Width: width} }

func TestDecodeKeepsPlaces(t *testing.T) {
	t.Parallel()
	doc := decoded(t, `# a comment
use: [here, prod]
launch:   prod
production:
  - prod
protect:
  labels: {Team.io/Keep: "true", n: 1.0}
  ids: [abc, prod/def]
limits:
  max_fraction: "50%"
providers:
  prod:
    type: cloud
    token: 0123
    owned: {labels: {Team.io/X: yes}}
`)
	assert.Equal(t, []word{{"here", at(2, 7, 4)}, {"prod", at(2, 13, 4)}}, doc.use)
	assert.Equal(t, entry{text: "prod", origin: "/c.yaml:3"}, doc.scalars[keyLaunch])
	assert.Equal(t, at(3, 11, 4), doc.places[keyLaunch])
	assert.Equal(t, []word{{"prod", at(5, 5, 4)}}, doc.production)
	assert.Equal(t, []placed[Label]{{Label{"Team.io/Keep", "true"}, at(7, 12, 12)}, {Label{"n", "1.0"}, at(7, 34, 1)}}, doc.labels)
	assert.Equal(t, []placed[sandbox.Ref]{{sandbox.Ref{ID: "abc"}, at(8, 9, 3)}, {sandbox.Ref{Provider: "prod", ID: "def"}, at(8, 14, 8)}}, doc.ids)
	assert.Equal(t, entry{text: "50%", origin: "/c.yaml:10"}, doc.scalars["limits.max_fraction"])
	assert.Equal(t, entry{text: "0123", origin: "/c.yaml:14"}, doc.scalars["providers.prod.token"], "as it is written, not as a number")
	require.Len(t, doc.profiles, 1)
	assert.Equal(t, map[string]string{"Team.io/X": "yes"}, doc.profiles[0].owned.Labels)
}

func TestDecodeAcceptsFlowBlockAndJSON(t *testing.T) {
	t.Parallel()
	want := decoded(t, "limits:\n  max_delete: 3\nuse:\n- here\n")
	for name, content := range map[string]string{
		"flow":    "limits: {max_delete: 3}\nuse: [here]",
		"json":    `{"limits": {"max_delete": "3"}, "use": ["here"]}`,
		"quotes":  "'limits': {\"max_delete\": '3'}\nuse: ['here']",
		"windows": "limits:\r\n  max_delete: 3\r\nuse:\r\n- here\r\n",
	} {
		doc := decoded(t, content)
		assert.Equal(t, want.scalars["limits.max_delete"].text, doc.scalars["limits.max_delete"].text, name)
		assert.Equal(t, wordTexts(want.use), wordTexts(doc.use), name)
	}
}

func TestDecodeWithoutTypes(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"providers: {a: {type: b}}", "providers: {a: x}", "providers: {a: {}}"} {
		_, errs := decodeFile("/c.yaml", []byte(content), nil)
		assert.Len(t, errs, 1, content)
	}
	assert.Empty(t, decoded(t, "providers: {}").profiles)
}

func TestTheWholeFileOfTheSurfaceIsReadButForLaterRooms(t *testing.T) {
	t.Parallel()
	doc := decoded(t, `providers:
  local:   {type: here}
use: [local]      # default for --provider; absent = all
launch: local
production: [local]               # needs --production
protect: {labels: {sbx/keep: "true"}, ids: []}
limits: {max_delete: 20, max_fraction: 25%, concurrency: 16, request_timeout: 10s, provider_timeout: 20s, max_sandboxes: 50}   # one provider's share of a verb
`)
	assert.Len(t, doc.scalars, 8)
	for _, m := range limitSettings() {
		assert.Equal(t, cmp.Or(m.fallback, m.sample), doc.scalars[m.settingKey()].text, "the surface shows the default of %s", m.name)
	}
}
