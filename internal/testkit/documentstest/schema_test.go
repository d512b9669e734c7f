package documentstest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMistakesAreFound: each kind of mistake that a document can have against a schema of sbx.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	s, err := parseSchema([]byte(`{"type":"object","properties":{"schema":{"const":"x/v1"},"items":{"type":"array","items":{"$ref":"#/$defs/Item"}},` +
		`"counts":{"type":"object","additionalProperties":{"type":"integer"}},"item":{"anyOf":[{"$ref":"#/$defs/Item"},{"type":"null"}]}},` +
		`"required":["schema"],"$defs":{"Item":{"type":"object","properties":{"state":{"type":"string","enum":["up","down"]},"age":{"type":["number","null"]}},"required":["state"]}}}`))
	require.NoError(t, err)
	for document, says := range map[string]string{
		`{"schema":"x/v1","items":[{"state":"up","age":1.5},{"state":"down","age":null}],"counts":{"a":1},"item":null}`: "",
		`{"schema":"x/v1","item":{"state":"up"}}`: "",
		`{}`:                           "schema is missing",
		`{"schema":"x/v2"}`:            ".schema: x/v2 is not",
		`{"schema":"x/v1","more":1}`:   "more is not described",
		`{"schema":"x/v1","items":{}}`: "is not of type array",
		`{"schema":"x/v1","items":[{"state":"up"},{}]}`:        ".items[1]: state is missing",
		`{"schema":"x/v1","items":[{"state":"odd"}]}`:          ".items[0].state: odd is not",
		`{"schema":"x/v1","items":[{"state":"up","age":"1"}]}`: "is not of type number or null",
		`{"schema":"x/v1","counts":{"a":1.5}}`:                 ".counts.a: 1.5 is not of type integer",
		`{"schema":"x/v1","counts":{"a":true}}`:                ".counts.a: true is not of type integer",
		`{"schema":"x/v1","item":{"state":"up","more":1}}`:     "none of 2 forms",
	} {
		var value any
		require.NoError(t, json.Unmarshal([]byte(document), &value), document)
		err := s.check("", value, s.Defs)
		if says == "" {
			require.NoError(t, err, document)
			continue
		}
		require.ErrorContains(t, err, says, document)
	}
	_, err = parseSchema([]byte(`{"type":"string","pattern":"x"}`))
	assert.ErrorContains(t, err, "pattern", "a keyword that is not checked is no schema of sbx")
}
