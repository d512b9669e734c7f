package jsontext

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMembersAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	got, err := Members(nil, []byte(" {\"a\": [1, {\"x\":2}] , \"\\u0062\":\"t\\\"\", \"a\":null, \"\xff\":1} \n"))
	require.NoError(t, err)
	var texts []string
	for _, m := range got {
		texts = append(texts, m.Key+"="+string(m.Value))
	}
	assert.Equal(t, []string{`a=[1, {"x":2}]`, `b="t\""`, `a=null`, "\uFFFD=1"}, texts)
	got, err = Members(nil, []byte("{}"))
	require.NoError(t, err)
	assert.Empty(t, got)
	for _, text := range []string{"", "[1]", "7", "{", `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1}x`, `{"a":1}{}`, `{"a":1,}`, `{a:1}`, `{"a":tru}`, "{\"a\":\"\x01\"}"} {
		_, err := Members(nil, []byte(text))
		require.Error(t, err, text)
	}
}

func TestElementsAreThoseOfTheText(t *testing.T) {
	t.Parallel()
	got, err := Elements(nil, []byte(" [1, {\"x\":[2]} , \"t\\\"\", []] "))
	require.NoError(t, err)
	var texts []string
	for _, value := range got {
		texts = append(texts, string(value))
	}
	assert.Equal(t, []string{"1", `{"x":[2]}`, `"t\""`, "[]"}, texts)
	for _, text := range []string{"", "{}", "[", "[1", "[1]2", "[1,]", "[tru]"} {
		_, err := Elements(nil, []byte(text))
		require.Error(t, err, text)
	}
}
