package wirekit_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

func TestListingsWithoutAnEndAreErrors(t *testing.T) {
	t.Parallel()
	count := func(token func(page int) string, row func(page int) string) (pages int, err error) {
		err = wirekit.EachRow("prod", "list", func(string) (wirekit.Page[string], error) {
			pages++
			return wirekit.Page[string]{Rows: []string{row(pages)}, Next: token(pages)}, nil
		}, func(row string) string { return row }, func(string) bool { return true })
		return pages, err
	}
	same := func(int) string { return "again" }
	pages, err := count(same, strconv.Itoa)
	assert.Equal(t, 2, pages)
	require.ErrorContains(t, err, "repeats itself")
	pages, err = count(strconv.Itoa, same)
	assert.Less(t, pages, 50, "pages without a new row are read for ever")
	require.ErrorContains(t, err, "does not end")
	pages, err = count(strconv.Itoa, strconv.Itoa)
	assert.LessOrEqual(t, pages, 10_000)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
}

// TestTheEndOfAListIsMarked: a full page without a token is the last one only where something says so.
func TestTheEndOfAListIsMarked(t *testing.T) {
	t.Parallel()
	for body, complete := range map[string]bool{
		`{"items":["a","b"],"next":null}`: true, `{"items":["a"]}`: true, `{"items":[]}`: true,
		`{"items":["a","b"]}`: false, `{"items":["a","b","c"]}`: false, `{"items":["a",null]}`: false,
	} {
		var answer struct {
			Items httpx.List[string] `json:"items"`
			Next  wirekit.NextToken  `json:"next"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
		id := func(row string) string { return row }
		read := func(string) (wirekit.Page[string], error) { return wirekit.NewPage(answer.Items, answer.Next, 2, id) }
		err := wirekit.EachRow("prod", "list", read, id, func(string) bool { return true })
		assert.Equal(t, complete, err == nil, "%s: %v", body, err)
		if !complete {
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), body)
			require.ErrorContains(t, err, "neither a next page nor a total", body)
		}
	}
}

// TestAnEmptyPageBehindATokenIsNoEnd: a cursor that has lost its place gives one, unless something says that it is the end.
func TestAnEmptyPageBehindATokenIsNoEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last     wirekit.Page[string]
		complete bool
	}{
		"nothing marks it": {wirekit.Page[string]{Unmarked: true}, false}, "a null token or a total": {wirekit.Page[string]{}, true},
		"it has a row": {wirekit.Page[string]{Rows: []string{"c"}, Unmarked: true}, true},
	} {
		read := func(token string) (wirekit.Page[string], error) {
			if token == "" {
				return wirekit.Page[string]{Rows: []string{"a", "b"}, Next: "b", Unmarked: true, Full: true}, nil
			}
			return tc.last, nil
		}
		err := wirekit.EachRow("prod", "list", read, func(row string) string { return row }, func(string) bool { return true })
		assert.Equal(t, tc.complete, err == nil, name)
		if !tc.complete {
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			require.ErrorContains(t, err, "there may be more than 2", name)
		}
	}
}

// TestRefusedRowsEndNoListing: what follows them is read, and the error comes at the end.
func TestRefusedRowsEndNoListing(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{"": `["a",7,"c"]`, "2": `["d",null]`}
	read := func(token string) (wirekit.Page[string], error) {
		var l httpx.List[string]
		require.NoError(t, json.Unmarshal([]byte(bodies[token]), &l))
		rows, err := l.Rows()
		return wirekit.Page[string]{Rows: rows, Next: map[string]string{"": "2"}[token]}, err
	}
	var got []string
	err := wirekit.EachRow("prod", "list", read, func(row string) string { return row }, func(row string) bool { got = append(got, row); return true })
	assert.Equal(t, []string{"a", "c", "d"}, got)
	require.ErrorContains(t, err, "row 2")
}

func TestLabelsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]wirekit.Labels{
		`null`: nil, `[]`: nil, `{}`: {}, `{"a":"b"}`: {"a": "b"}, `{"sbx/keep":true}`: {"sbx/keep": "true"}, `{"a":null}`: {"a": ""},
		`["sbx/keep"]`: {sandbox.LabelUnreadable: `["sbx/keep"]`}, `"x"`: {sandbox.LabelUnreadable: `"x"`}, `7`: {sandbox.LabelUnreadable: "7"},
	} {
		var got wirekit.Labels
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		assert.Equal(t, want, got, text)
	}
}

func TestRowsOfSeveralPagesComeOnce(t *testing.T) {
	t.Parallel()
	pages := map[string][]string{"": {"a", "b"}, "2": {"b", "c"}, "3": {"d"}}
	next := map[string]string{"": "2", "2": "3"}
	read := func(token string) (wirekit.Page[string], error) {
		return wirekit.Page[string]{Rows: pages[token], Next: next[token]}, nil
	}
	var got []string
	take := func(row string) bool { got = append(got, row); return row != "c" }
	require.NoError(t, wirekit.EachRow("prod", "list", read, func(row string) string { return row }, take))
	assert.Equal(t, []string{"a", "b", "c"}, got, "take has stopped at c")
}
