package wirekit_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/wirekit"
)

func TestListingsWithoutAnEndAreErrors(t *testing.T) {
	t.Parallel()
	count := func(token func(page int) string, row func(page int) string) (pages int, err error) {
		err = wirekit.EachRow("prod", "list", func(string) ([]string, string, error) {
			pages++
			return []string{row(pages)}, token(pages), nil
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

func TestRowsOfSeveralPagesComeOnce(t *testing.T) {
	t.Parallel()
	pages := map[string][]string{"": {"a", "b"}, "2": {"b", "c"}, "3": {"d"}}
	next := map[string]string{"": "2", "2": "3"}
	read := func(token string) ([]string, string, error) { return pages[token], next[token], nil }
	var got []string
	take := func(row string) bool { got = append(got, row); return row != "c" }
	require.NoError(t, wirekit.EachRow("prod", "list", read, func(row string) string { return row }, take))
	assert.Equal(t, []string{"a", "b", "c"}, got, "take has stopped at c")
}
