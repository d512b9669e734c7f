package tui

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// logBoard is a dashboard with the log of its first sandbox open, whose reader is the test.
func logBoard(t *testing.T) (*Model, *log) {
	t.Helper()
	m := board(t, newScene(), 80, 24)
	m.cells.Plain = true
	press(m, "l")
	require.NotNil(t, m.log)
	return m, m.log
}

var matcher = triage.NewMatcher()

// come is a batch of a log, as it comes.
func come(m *Model, l *log, texts ...string) {
	msg := logMsg{log: l}
	for _, text := range texts {
		pattern, _ := matcher.Match(text)
		msg.lines = append(msg.lines, newLogLine(look.LogLine{LogLine: sandbox.LogLine{Text: text}, Pattern: pattern}))
	}
	m.Update(msg)
}

func numbered(from, to int) (texts []string) {
	for i := from; i < to; i++ {
		texts = append(texts, fmt.Sprintf("line %d.", i))
	}
	return texts
}

func frameOf(m *Model) string { return strings.Join(m.Frame(), "\n") }

// TestALogIsFollowed: it stays at its end until a key leaves it, says what came meanwhile, and follows again.
func TestALogIsFollowed(t *testing.T) {
	t.Parallel()
	m, l := logBoard(t)
	assert.Contains(t, frameOf(m), "following  no output yet")
	come(m, l, numbered(0, 100)...)
	assert.Contains(t, frameOf(m), "following")
	assert.Contains(t, frameOf(m), "line 99.")
	press(m, "k")
	assert.NotContains(t, frameOf(m), "line 99.")
	come(m, l, numbered(100, 1334)...)
	assert.Contains(t, frameOf(m), "above the end, 1,234 new")
	assert.Contains(t, frameOf(m), "line 98.", "who reads above stays there")
	press(m, "G")
	assert.Contains(t, frameOf(m), "line 1333.")
	assert.Contains(t, frameOf(m), "following")
	press(m, "p")
	come(m, l, "newest")
	assert.NotContains(t, frameOf(m), "newest")
	assert.Contains(t, frameOf(m), "paused, 1 new")
	assert.False(t, m.paused, "only the log is paused")
	press(m, "p")
	assert.Contains(t, frameOf(m), "newest")
	m.Update(logMsg{log: l, ended: true})
	assert.Contains(t, frameOf(m), "  ended")
}

// TestALogIsBounded in its lines and in their length, and says what was dropped.
func TestALogIsBounded(t *testing.T) {
	t.Parallel()
	m, l := logBoard(t)
	come(m, l, numbered(0, mostLogLines)...)
	press(m, "k")
	top := m.page.lines[m.page.top]
	come(m, l, numbered(mostLogLines, mostLogLines+1234)...)
	assert.Len(t, m.page.lines, mostLogLines)
	assert.Len(t, m.page.tones, mostLogLines)
	assert.Contains(t, frameOf(m), "dropped 1,234 lines")
	assert.Equal(t, top, m.page.lines[m.page.top], "the page stays at its lines")
	come(m, l, strings.Repeat("é", 50_000)+"end", "a\x1b[2Jb\rc\x9bd")
	long := m.page.lines[len(m.page.lines)-2]
	assert.LessOrEqual(t, len(long), mostLogBytes+len(" ..."))
	assert.True(t, strings.HasSuffix(long, "é ..."))
	press(m, "G")
	assert.Contains(t, frameOf(m), `a\x1b[2Jb\rc\x9bd`)
	m.cells.Plain = false
	for _, line := range m.Frame() {
		assert.NotContains(t, line, "\x1b[2J")
		assert.LessOrEqual(t, output.Width(line), 80)
	}
}

// TestALogIsSearched: hits are counted, shown and gone through; n and N go round.
func TestALogIsSearched(t *testing.T) {
	t.Parallel()
	m, l := logBoard(t)
	texts := numbered(0, 200)
	texts[10], texts[60], texts[199] = "first ERROR here", "second error", strings.Repeat("x", 500)+" third Error"
	come(m, l, texts...)
	press(m, "/", "e", "r", "r", "x", "backspace")
	assert.Contains(t, frameOf(m), "/err_")
	press(m, "enter")
	assert.Contains(t, frameOf(m), "/err  3 of 3")
	assert.Contains(t, frameOf(m), "third Error", "the hit is not cut away")
	press(m, "n")
	assert.Contains(t, frameOf(m), "/err  1 of 3")
	assert.Contains(t, frameOf(m), "> first ERROR here")
	press(m, "n", "n", "N")
	assert.Contains(t, frameOf(m), "/err  2 of 3")
	come(m, l, "a fourth error")
	assert.Contains(t, frameOf(m), "/err  2 of 4")
	assert.Contains(t, frameOf(m), "> second error", "a hit stays on the screen")
	come(m, l, numbered(0, mostLogLines-140)...)
	assert.Contains(t, frameOf(m), "/err  2 lines", "a hit that is not kept is not counted")
	press(m, "/", "z", "z", "enter")
	assert.Contains(t, frameOf(m), "/zz  not found")
	press(m, "/", "esc")
	assert.NotContains(t, frameOf(m), "/zz")
	assert.Empty(t, m.filter, "the table has its own")
	assert.NotNil(t, m.page)
}

// TestALogShowsSignsOfTrouble: the patterns of triage stand before their lines, and have a tone.
func TestALogShowsSignsOfTrouble(t *testing.T) {
	t.Parallel()
	m, l := logBoard(t)
	come(m, l, "all is well", "write /x: no space left on device")
	m.Update(logMsg{log: l, lines: []logLine{newLogLine(errors.New("it broke"))}})
	assert.Contains(t, frameOf(m), "\n[disk_full] write /x: no space left on device")
	assert.Equal(t, []output.Tone{output.Plain, output.Bad, output.Bad}, m.page.tones)
	assert.Contains(t, frameOf(m), "error: it broke")
}

// TestAStormOfLinesIsFewMessages: 100,000 lines of 90,000 characters within a second are at most ten messages,
// none with more than is kept, and a key between them finds the page bounded.
func TestAStormOfLinesIsFewMessages(t *testing.T) {
	t.Parallel()
	const lines = 100_000
	m, l := logBoard(t)
	line := newLogLine(look.LogLine{LogLine: sandbox.LogLine{Text: strings.Repeat("y", 90_000)}})
	assert.Less(t, len(line.text), 2*mostLogBytes)
	messages := 0
	synctest.Test(t, func(t *testing.T) {
		l.ctx, l.tail = t.Context(), &tail{more: make(chan struct{}, 1)}
		go func() {
			for i := range lines {
				l.tail.add(line)
				if i%1000 == 0 {
					time.Sleep(time.Second / (lines / 1000))
				}
			}
			l.tail.end()
		}()
		for !l.ended {
			msg, ok := l.next().(logMsg)
			require.True(t, ok)
			messages++
			assert.LessOrEqual(t, len(msg.lines), mostLogLines)
			m.Update(msg)
			press(m, "k", "G")
		}
	})
	assert.LessOrEqual(t, messages, 11)
	assert.Equal(t, lines, l.dropped+len(m.page.lines), "what is not kept is counted")
	assert.Len(t, m.page.lines, mostLogLines)
}

// TestALeftLogIsReadNoMore: its reader ends with the page.
func TestALeftLogIsReadNoMore(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"esc", "tab", "enter", "?", "l"} {
		m, l := logBoard(t)
		press(m, key)
		m.Update(beatMsg{})
		require.Error(t, l.ctx.Err(), key)
		assert.Nil(t, l.next(), key)
		m.Update(logMsg{log: l, lines: []logLine{{text: "late"}}})
		if m.page != nil {
			assert.NotContains(t, m.page.lines, "late", key)
		}
	}
}

// BenchmarkLogBatch is a full batch with its frame, and what a key costs after it.
func BenchmarkLogBatch(b *testing.B) {
	m := NewModel(b.Context(), newScene(), noon, "sbx", output.Cells{})
	m.Update(newRound(newScene().Round(b.Context(), "e2b"), nil))
	r := newScene().rounds["e2b"]
	r.Profile = "e2b"
	m.Update(newRound(r, nil))
	press(m, "l")
	msg := logMsg{log: m.log}
	for i := range 500 {
		msg.lines = append(msg.lines, newLogLine(look.LogLine{LogLine: sandbox.LogLine{Text: strconv.Itoa(i) + strings.Repeat("z", 90_000)}}))
	}
	for b.Loop() {
		m.Update(msg)
		press(m, "k")
		_ = m.View()
	}
}
