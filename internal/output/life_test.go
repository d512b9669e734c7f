package output

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// life is what happened to one list, as the test remembers it.
type life struct {
	items, errs, failures int
	interrupted           bool
	truncated             bool
	extra                 map[string]any
}

// live does random things to a list and keeps the books beside it.
func live(t *testing.T, r *rand.Rand, l *List[box]) life {
	t.Helper()
	past := life{extra: map[string]any{}}
	for range r.IntN(30) {
		switch r.IntN(9) {
		case 0:
			l.Fail(down())
			past.failures++
			past.errs++
		case 1:
			require.NoError(t, l.AddFailed(randomBox(r), fault.New(fault.KindGone, "gone %d", past.errs).At("prod", "terminate x")))
			past.items++
			past.errs++
		case 2:
			l.Truncated()
			past.truncated = true
		case 3:
			require.NoError(t, l.Flush())
		case 4:
			key := fmt.Sprintf("extra_%d", len(past.extra))
			keys := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Text", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`json:"` + key + `"`)}})).Elem()
			keys.Field(0).SetString("x\u202e\x00")
			l.Set(keys.Interface())
			past.extra[key] = "x\u202e\x00"
		case 5:
			if r.IntN(4) == 0 {
				l.Fail(context.Canceled)
				past.failures++
				past.errs++
				past.interrupted = true
			}
		default:
			require.NoError(t, l.Add(randomBox(r)))
			past.items++
		}
	}
	return past
}

func randomBox(r *rand.Rand) box {
	b := boxes()[r.IntN(3)]
	b.ref = sandbox.Ref{Provider: "p", ID: strconv.Itoa(r.IntN(1e6))}
	b.note = strings.Repeat([]string{"x", "日", "\t", "\x1b[31m", "\"", "'", ", ", "\u202e", "\xff", "\n", "=", "# "}[r.IntN(12)], r.IntN(40))
	return b
}

// seeds is how many random lives each format has.
const seeds = 150

func lives(t *testing.T, format string, at place, check func(t *testing.T, past life, stdout string, code int)) {
	t.Helper()
	for seed := range uint64(seeds) {
		s := newStage(at)
		l := open(t, s.printer(t, format), boxSpec())
		past := live(t, rand.New(rand.NewPCG(seed, 1)), l)
		err := l.Close()
		check(t, past, s.out.String(), fault.ExitCode(err))
		if t.Failed() {
			t.Fatalf("seed %d, %s:\n%s", seed, format, s.out.String())
		}
	}
}

func TestLivesAsDocuments(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "yaml", "jq=."} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			lives(t, format, place{}, func(t *testing.T, past life, stdout string, code int) {
				t.Helper()
				document := parse(t, format, stdout)
				assert.Len(t, document["items"], past.items)
				assert.Len(t, document["errors"], past.errs)
				assert.Equal(t, past.failures == 0, document["complete"])
				assert.Equal(t, past.truncated, document["truncated"])
				assert.Equal(t, past.interrupted, document["interrupted"])
				for key, want := range past.extra {
					assert.Equal(t, want, document[key])
				}
				expectCode(t, past, code)
				assertClean(t, stdout)
			})
		})
	}
}

// expectCode says from the books what the exit code must be.
func expectCode(t *testing.T, past life, code int) {
	t.Helper()
	switch {
	case past.interrupted:
		assert.Equal(t, 130, code)
	case past.errs == 0:
		assert.Zero(t, code)
	default:
		assert.Contains(t, []int{3, 6, 7}, code)
	}
}

func assertClean(t *testing.T, stdout string) {
	t.Helper()
	assert.False(t, strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(stdout), forbidden))
}

func TestLivesAsLines(t *testing.T) {
	t.Parallel()
	lives(t, "ndjson", place{}, func(t *testing.T, past life, stdout string, code int) {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		require.Len(t, lines, past.items+past.errs+1)
		for i, line := range lines {
			var object map[string]any
			require.NoError(t, json.Unmarshal([]byte(line), &object))
			switch {
			case i < past.items:
				assert.NotContains(t, object, "event", "data lines carry no event")
				assert.Len(t, object, len(boxColumns()), "every key is there")
			case i < len(lines)-1:
				assert.Equal(t, "error", object["event"])
				assert.Len(t, object, 7)
			default:
				assert.Equal(t, "summary", object["event"])
				assert.InDelta(t, past.items, object["items"], 0)
				assert.InDelta(t, past.errs, object["errors"], 0)
				assert.InDelta(t, code, object["exit_code"], 0)
				assert.Equal(t, past.failures == 0, object["complete"])
				assert.Equal(t, past.interrupted, object["interrupted"])
			}
		}
		assertClean(t, stdout)
	})
}

func TestLivesAsRows(t *testing.T) {
	t.Parallel()
	lives(t, "csv", place{}, func(t *testing.T, past life, stdout string, code int) {
		t.Helper()
		rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, past.items+1)
		for _, row := range rows[1:] {
			for _, cell := range row {
				assert.NotRegexp(t, `^[=+@-]`, cell)
			}
		}
		expectCode(t, past, code)
		assertClean(t, stdout)
	})
	lives(t, "wide", place{}, func(t *testing.T, past life, stdout string, _ int) {
		t.Helper()
		assert.Equal(t, past.items+1, strings.Count(stdout, "\n"))
		for line := range strings.Lines(stdout) {
			assert.Equal(t, 6, strings.Count(line, "\t"))
		}
		assertClean(t, stdout)
	})
	lives(t, "name", place{}, func(t *testing.T, past life, stdout string, _ int) {
		t.Helper()
		assert.Equal(t, past.items, strings.Count(stdout, "p/"))
		assert.Equal(t, past.items, strings.Count(stdout, "\n"))
	})
}

func TestLivesOnATerminal(t *testing.T) {
	t.Parallel()
	lives(t, "table", place{width: 90, env: []string{"NO_COLOR=1"}}, func(t *testing.T, past life, stdout string, _ int) {
		t.Helper()
		assert.Equal(t, past.items, strings.Count(stdout, "p/"), "every row is there")
		assert.NotContains(t, stdout, "\t")
		for line := range strings.Lines(stdout) {
			assert.LessOrEqual(t, cellWidth(strings.TrimSuffix(line, "\n")), 90)
		}
		assertClean(t, stdout)
	})
}

// TestBrokenWhereverItBreaks cuts stdout off after every number of bytes: the list ends
// quietly, and what came out is the beginning of the whole.
func TestBrokenWhereverItBreaks(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json", "ndjson", "csv", "yaml", "name"} {
		whole := newStage(place{})
		_, err := playOn(t, whole.printer(t, format))
		require.NoError(t, err)
		for room := range len(whole.out.String()) {
			s := newStage(place{})
			limited := &cut{room: room}
			s.Stdout.Writer = limited
			_, err := playOn(t, s.printer(t, format))
			require.ErrorIs(t, err, ErrClosed, "%s after %d bytes", format, room)
			assert.True(t, strings.HasPrefix(whole.out.String(), limited.text.String()), format)
			assert.Empty(t, s.err.String())
		}
	}
}

// cut takes a number of bytes and then breaks in the middle of a write.
type cut struct {
	room int
	text strings.Builder
}

func (c *cut) Write(b []byte) (int, error) {
	n := min(len(b), c.room-c.text.Len())
	c.text.Write(b[:n])
	if n < len(b) {
		return n, fmt.Errorf("write |1: %w", syscall.EPIPE)
	}
	return n, nil
}
