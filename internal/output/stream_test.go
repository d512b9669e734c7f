package output

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func wordColumns() []heading { return []heading{{name: "word", key: `"word":`, title: "WORD"}} }

func word(v any) record { return record{values: []any{v}} }

func TestStreamWithoutItems(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	e := newStream(s.printer(t, "json"), "sbx.x/v1", wordColumns())
	require.NoError(t, e.flushRows())
	assert.Empty(t, s.out.String(), "nothing before the first item, so that exit 2 can leave stdout empty")
	require.NoError(t, e.closeDocument(ending{}))
	golden(t, "stream-empty", s.out.String())
}

func TestStreamNestsItems(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	e := newStream(s.printer(t, "json"), "sbx.x/v1", wordColumns())
	require.NoError(t, e.addRecord(word(Fields{{"deep", []int{1}}})))
	require.NoError(t, e.addRecord(word(nil)))
	require.NoError(t, e.closeDocument(ending{incomplete: true, extra: Fields{{"more", Fields{{"a", int64(1)}}}}}))
	golden(t, "stream-nested", s.out.String())
}

func TestStreamLargerThanItsBuffer(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	e := newStream(s.printer(t, "json"), "sbx.x/v1", wordColumns())
	long := strings.Repeat("long ", gatherMax)
	for range 3 {
		require.NoError(t, e.addRecord(word(long)))
	}
	assert.NotEmpty(t, s.out.String(), "the buffer is bounded")
	require.NoError(t, e.closeDocument(ending{}))
	var document struct {
		Items []struct {
			Word string `json:"word"`
		} `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.out.String()), &document))
	require.Len(t, document.Items, 3)
	assert.Equal(t, long, document.Items[2].Word)
}

func TestEncodersForEveryFormat(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format string
		at     place
		lines  bool
		want   encoder
		reads  want
	}{
		"json":           {"json", place{}, false, &stream{}, wantValues},
		"ndjson":         {"ndjson", place{}, false, &lineEncoder{}, wantValues},
		"yaml":           {"yaml", place{}, false, &collector{}, wantValues},
		"jq":             {"jq=.", place{}, false, &collector{}, wantValues},
		"template":       {"template=x", place{}, false, &collector{}, wantValues},
		"csv":            {"csv", place{width: 80}, false, &csvEncoder{}, wantValues},
		"name":           {"name", place{width: 80}, false, nameEncoder{}, wantName},
		"table in pipe":  {"table", place{}, false, &tabEncoder{}, wantValues},
		"asked in pipe":  {"-o table", place{}, false, &grid{}, wantCells},
		"wide in pipe":   {"wide", place{}, false, &tabEncoder{}, wantValues},
		"table on tty":   {"table", place{width: 80}, false, &grid{}, wantCells},
		"lines on tty":   {"table", place{width: 80}, true, textEncoder{}, wantLine},
		"lines in pipe":  {"wide", place{}, true, textEncoder{}, wantLine},
		"lines as json":  {"json", place{}, true, &stream{}, wantValues},
		"lines as names": {"name", place{}, true, nameEncoder{}, wantName},
	} {
		e := newEncoder(newStage(tc.at).printer(t, tc.format), "s", wordColumns(), tc.lines, false)
		assert.IsType(t, tc.want, e, name)
		assert.Equal(t, tc.reads, e.selection(), name)
		require.NoError(t, e.flushRows(), "%s: flushing nothing is nothing", name)
	}
}

func TestNagiosIsRefusedLate(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	code, _ := play(t, s, s.printer(t, "nagios"), scene{items: boxes()})
	assert.Equal(t, 2, code)
	assert.Empty(t, s.out.String())
	assert.Contains(t, s.err.String(), "this command has no nagios output")
}

func TestTabHeaderOnce(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	e := &tabEncoder{printer: s.printer(t, "table"), columns: wordColumns()}
	require.NoError(t, e.addRecord(word("a")))
	require.NoError(t, e.addRecord(word(nil)))
	require.NoError(t, e.closeDocument(ending{}))
	assert.Equal(t, "WORD\na\n\n", s.out.String())
}
