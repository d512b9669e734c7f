package runlog

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseRecord(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 1, 2, 3, 450_000_000, time.UTC)
	for name, tc := range map[string]struct {
		line string
		want record
		ok   bool
	}{
		"full":             {"2026-11-20T01:02:03.45Z stdout F hello", record{at, Stdout, tagFull, []byte("hello")}, true},
		"part":             {"2026-11-20T01:02:03.45Z stderr P hel", record{at, Stderr, tagPart, []byte("hel")}, true},
		"empty text":       {"2026-11-20T01:02:03.45Z stdout F ", record{at, Stdout, tagFull, []byte{}}, true},
		"text with spaces": {"2026-11-20T01:02:03.45Z stdout F  a b ", record{at, Stdout, tagFull, []byte(" a b ")}, true},
		"carriage return":  {"2026-11-20T01:02:03.45Z stdout F a\r", record{at, Stdout, tagFull, []byte("a\r")}, true},
		"another zone":     {"2026-11-20T03:02:03.45+02:00 stdout F a", record{at, Stdout, tagFull, []byte("a")}, true},
		"nothing":          {line: ""},
		"torn time":        {line: "2026-11-20T01:0"},
		"torn head":        {line: "2026-11-20T01:02:03.45Z stdout"},
		"torn tag":         {line: "2026-11-20T01:02:03.45Z stdout F"},
		"no time":          {line: "yesterday stdout F a"},
		"unknown stream":   {line: "2026-11-20T01:02:03.45Z stdin F a"},
		"unknown tag":      {line: "2026-11-20T01:02:03.45Z stdout X a"},
		"long tag":         {line: "2026-11-20T01:02:03.45Z stdout FP a"},
		"zeros":            {line: strings.Repeat("\x00", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseRecord([]byte(tc.line))
			require.Equal(t, tc.ok, ok)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestHeadBytesBoundsTheHead(t *testing.T) {
	t.Parallel()
	longest := appendStamp(nil, time.Date(2026, 11, 20, 1, 2, 3, 123_456_789, time.FixedZone("", 3600)))
	assert.LessOrEqual(t, len(appendRecord(nil, longest, Stderr, tagFull, nil)), headBytes)
}

func TestParseRecordAllocatesNothing(t *testing.T) { //nolint:paralleltest // allocations of other tests would be counted
	line := []byte("2026-11-20T01:02:03.45Z stdout F hello")
	assert.Zero(t, testing.AllocsPerRun(100, func() { parseRecord(line) }))
}

func TestStreamIndexTurnsBack(t *testing.T) {
	t.Parallel()
	for _, s := range []Stream{Stdout, Stderr} {
		assert.Equal(t, s, streamAt(s.index()))
	}
	assert.Equal(t, Stdout.index(), Stream("exec").index())
}

// What parses is written back as a record that parses to the same.
func FuzzParseRecord(f *testing.F) {
	f.Add([]byte("2026-11-20T01:02:03.45Z stdout F hello"))
	f.Add([]byte("2026-11-20T01:02:03+02:00 stderr P "))
	f.Add([]byte("0000-01-01T00:00:00Z stdout F \x00\xff"))
	f.Add([]byte("  F "))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, ok := parseRecord(line)
		if !ok {
			return
		}
		again := appendRecord(nil, appendStamp(nil, r.at), r.stream, r.tag, r.text)
		second, ok := parseRecord(bytes.TrimSuffix(again, []byte{'\n'}))
		if r.at.Year() < 0 || r.at.Year() > 9999 {
			return // the zone moved it out of the calendar that the format has
		}
		require.True(t, ok, "%q", again)
		require.Equal(t, r, second)
	})
}
