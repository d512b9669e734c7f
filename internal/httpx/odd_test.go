package httpx_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

type oddRow struct {
	ID     string            `json:"id"             odd:"error"`
	Exit   *int              `json:"exit"           odd:"error"`
	Born   time.Time         `json:"born"`
	Memory *int64            `json:"memory"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
	Words  []string          `json:"words"`
	Inner  struct {
		At    time.Time `json:"at"`
		Count int       `json:"count"`
	} `json:"inner"`
	Next *struct {
		Token string `json:"token"`
	} `json:"next"`
}

// TestAnOddFieldIsNotReported: whatever its type and whatever is sent, only the odd field is lost.
func TestAnOddFieldIsNotReported(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		`"born":"2026-01-01 10:00:00"`, `"born":1767225600`, `"born":{}`, `"born":""`, `"memory":"512"`, `"memory":1.5`, `"memory":1e99`, `"memory":[1]`,
		`"name":7`, `"name":["a"]`, `"name":{}`, `"labels":[]`, `"labels":"x"`, `"labels":7`, `"words":"a"`, `"words":{}`, `"inner":7`, `"inner":[]`,
		`"inner":{"at":"x","count":"3"}`, `"next":"x"`, `"next":{"token":7}`,
	} {
		var lines []string
		body := `[{"id":"a","name":"first","memory":5},{"id":"b",` + field + `,"exit":3},{"id":"c","born":"2026-01-01T10:00:00Z"}]`
		m := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		c, err := httpx.New(httpx.Net{Dial: m.Dial, Trace: func(line string) { lines = append(lines, line) }}, httpx.Options{Profile: "p", Base: "http://api.example"})
		require.NoError(t, err)
		var list httpx.List[oddRow]
		_, err = c.JSON(t.Context(), httpx.Request{Op: "list", Path: "/x"}, &list)
		require.NoError(t, err, field)
		rows, err := list.Named(func(r oddRow) string { return r.ID })
		require.NoError(t, err, field)
		require.Len(t, rows, 3, field)
		assert.Equal(t, "first", rows[0].Name, field)
		assert.Equal(t, int64(5), *rows[0].Memory, field)
		assert.Equal(t, 3, *rows[1].Exit, "the other fields of the row: %s", field)
		assert.Nil(t, rows[1].Memory, "a number that cannot be read is no zero: %s", field)
		assert.Zero(t, rows[1].Born, field)
		assert.Empty(t, rows[1].Name, field)
		assert.Equal(t, 2026, rows[2].Born.Year(), field)
		name, _, _ := strings.Cut(strings.Trim(field, `"`), `"`)
		told := strings.Join(lines, "\n")
		assert.Contains(t, told, "row 2: "+name, "it is said: %s", field)
		assert.NotContains(t, told, "json.", field)
	}
}

// TestALabelThatIsNoTextKeepsItsText: a label that vanishes may have been the one that protects.
func TestALabelThatIsNoTextKeepsItsText(t *testing.T) {
	t.Parallel()
	var list httpx.List[oddRow]
	require.NoError(t, json.Unmarshal([]byte(`[{"id":"a","labels":{"keep":true,"n":7,"o":{"x":1},"none":null,"s":"t"},"words":["a",7]}]`), &list))
	rows, err := list.Rows()
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"keep": "true", "n": "7", "o": `{"x":1}`, "none": "", "s": "t"}, rows[0].Labels)
	assert.Equal(t, []string{"a", "7"}, rows[0].Words)
}

// TestAFieldThatDecidesIsNotIgnored: null has a meaning there, so its row is refused and the others stay.
func TestAFieldThatDecidesIsNotIgnored(t *testing.T) {
	t.Parallel()
	for row, word := range map[string]string{
		`{"id":7}`: "id must not be of type number", `{"id":["b"]}`: "id must not be of type array", `{"id":null}`: "has no id", `{}`: "has no id",
		`{"id":"b","exit":"0"}`: "exit must not be of type string", `null`: "is null", `7`: "must not be of type number", `[]`: "must not be of type array",
	} {
		var held struct {
			Items httpx.List[oddRow] `json:"items"`
		}
		require.NoError(t, json.Unmarshal([]byte(`{"items":[{"id":"a"},`+row+`,{"id":"c"}]}`), &held))
		rows, err := held.Items.Named(func(r oddRow) string { return r.ID })
		assert.Len(t, rows, 2, row)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), row)
		assert.True(t, httpx.OnlyRefused(err), row)
		require.ErrorContains(t, err, "row 2", row)
		require.ErrorContains(t, err, word, row)
	}
	m := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"id":"a","exit":"0"}`)) })
	c, err := httpx.New(httpx.Net{Dial: m.Dial}, httpx.Options{Profile: "p", Base: "http://api.example"})
	require.NoError(t, err)
	var one oddRow
	_, err = c.JSON(t.Context(), httpx.Request{Op: "get", Path: "/x"}, &one)
	require.ErrorContains(t, err, "exit must not be of type string")
}
