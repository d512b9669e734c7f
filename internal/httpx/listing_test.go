package httpx_test

import (
	"encoding/json"
	"testing"

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
