package httpx_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

type listed struct {
	ID string `json:"id"`
}

// TestAListIsAListOrAnError: an answer without a list is never an empty list.
func TestAListIsAListOrAnError(t *testing.T) {
	t.Parallel()
	for body, rows := range map[string]int{
		`[]`: 0, ` [] `: 0, `[{"id":"a"},{"id":"b"}]`: 2,
		`null`: -1, `{}`: -1, `""`: -1, `7`: -1, `{"error":"x"}`: -1, `[null]`: -1, `[{"id":"a"},null]`: -1, `[{"id":""}]`: -1, `[{}]`: -1, `[7]`: -1, `[[]]`: -1,
	} {
		var bare httpx.List[listed]
		err := json.Unmarshal([]byte(body), &bare)
		var got []listed
		if err == nil {
			got, err = bare.Named(func(r listed) string { return r.ID })
		}
		assert.Equal(t, rows < 0, err != nil, "%s: %v", body, err)
		if rows >= 0 {
			assert.Len(t, got, rows, body)
		}

		var held struct {
			Items httpx.List[listed] `json:"items"`
		}
		err = json.Unmarshal([]byte(`{"items":`+body+`}`), &held)
		if err == nil {
			_, err = held.Items.Named(func(r listed) string { return r.ID })
		}
		assert.Equal(t, rows < 0, err != nil, "in an object: %s: %v", body, err)
	}
	for _, body := range []string{`{}`, `null`, `{"error":{"message":"x"}}`} {
		var held struct {
			Items httpx.List[listed] `json:"items"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &held))
		_, err := held.Items.Rows()
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), body)
	}
}

// TestAnAnswerIsReadAsBefore: what encoding/json accepts means the same in the decoder that reads an
// answer once, odd spellings included.
func TestAnAnswerIsReadAsBefore(t *testing.T) {
	t.Parallel()
	type answer struct {
		ID     string            `json:"id"`
		Size   *float64          `json:"size"`
		At     time.Time         `json:"at"`
		Labels map[string]string `json:"labels"`
		Rows   []listed          `json:"rows"`
		Raw    json.RawMessage   `json:"raw"`
	}
	for _, text := range []string{
		`{"id":"a","size":1e3,"at":"2026-11-20T12:00:00.5+01:00","labels":{"a":"b"},"rows":[{"id":"x"},null],"raw":{"k":[1]}}`,
		`{"ID":"a","Size":null,"AT":null}`, `{"id":"a","id":"b","labels":{"a":"1","a":"2"}}`, `{"id":"a","unknown":{"id":7}}`,
		"{\"id\":\"a\xffb\\ud800\"}", `{"id":"<\u2028>\/"}`, `{"labels":{},"rows":[]}`, `null`, `{}`, ` {"id" : "a" } `,
	} {
		var want, got answer
		require.NoError(t, json.Unmarshal([]byte(text), &want), text)
		odd, err := httpx.Decode([]byte(text), &got)
		require.NoError(t, err, text)
		assert.Empty(t, odd, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{``, `{`, `{"id":"a"} x`, `{"id":"a",}`, `{'id':1}`, `[1`} {
		var got answer
		_, err := httpx.Decode([]byte(text), &got)
		require.Error(t, err, text)
		assert.Equal(t, answer{}, got, text)
	}
}
