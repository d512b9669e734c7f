package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// Bounds of a log.
const (
	mostLogLines = 5_000                  // lines that are kept
	mostLogBytes = 4_096                  // of a line
	firstLines   = 500                    // lines that are read before those that come
	logBatch     = 100 * time.Millisecond // lines that come within it are one message
)

// logLine is a line as it is shown: escaped, cut, and marked with its pattern.
type logLine struct {
	text string
	tone output.Tone
}

// newLogLine makes a line of an item of Source.Follow.
func newLogLine(item any) logLine {
	switch i := item.(type) {
	case look.LogLine:
		text := i.Text
		if len(text) > mostLogBytes {
			text = clip(text, mostLogBytes) + " ..."
		}
		text = strings.Clone(output.Escape(strings.ReplaceAll(text, "\t", "    "))) // the rest must not stay in memory
		if i.Pattern.ID == "" {
			return logLine{text: text}
		}
		return logLine{"[" + i.Pattern.ID + "] " + text, views.SeverityTone(i.Pattern.Severity)}
	case look.LogGap:
		return logLine{output.Escape(views.MissingOutput(i.Line)), output.Warn}
	case error:
		return logLine{"error: " + output.Escape(i.Error()), output.Bad}
	}
	return logLine{}
}

// clip is the beginning of a text within a number of bytes, in whole characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for back := 0; back < utf8.UTFMax-1 && most > 0 && !utf8.RuneStart(text[most]); back++ {
		most--
	}
	return text[:most]
}

// tail is what has come of a log and was not taken yet. Its reader is never held up.
type tail struct {
	mu      sync.Mutex
	lines   []logLine
	dropped int // lines that were pushed out by newer ones
	ended   bool
	more    chan struct{} // holds one: there is something to take
}

func (t *tail) push(item any) { t.add(newLogLine(item)) }

func (t *tail) add(lines ...logLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, lines...)
	if len(t.lines) >= 2*mostLogLines { // half at a time, so that a line is moved once
		t.lines = slices.Delete(t.lines, 0, mostLogLines)
		t.dropped += mostLogLines
	}
	select {
	case t.more <- struct{}{}:
	default:
	}
}

func (t *tail) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.add()
}

// logMsg is what has come of a log in a while.
type logMsg struct {
	log     *log
	lines   []logLine
	dropped int
	ended   bool
}

// next waits until something has come, and takes what comes within logBatch.
func (l *log) next() tea.Msg { //nolint:ireturn // as the library asks for
	t := l.tail
	select {
	case <-t.more:
	case <-l.ctx.Done():
		return nil
	}
	select {
	case <-time.After(logBatch):
	case <-l.ctx.Done():
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	excess := max(0, len(t.lines)-mostLogLines)
	msg := logMsg{l, slices.Clone(t.lines[excess:]), t.dropped + excess, t.ended}
	t.lines, t.dropped = t.lines[:0], 0
	return msg
}

// log is the page of a log that is followed.
type log struct {
	ctx  context.Context //nolint:containedctx // of its reader, which Bubble Tea starts
	stop context.CancelFunc
	tail *tail

	dropped int  // lines that are not kept; a line keeps its number, which counts them
	fresh   int  // lines that came while its end was not on the screen
	paused  bool // it stays where it is
	ended   bool // nothing comes any more

	searching bool // keys go into the needle
	needle    string
	hits      []int // numbers of the lines with the needle
	hit       int   // the one that was jumped to; -1 = none
}

// openLogs follows the log of the sandbox under the cursor, or of the task's.
func (m *Model) openLogs() tea.Cmd {
	if t, ok := m.currentTask(); ok {
		if ref, made := t.SandboxRef(); made {
			return m.openLogsOf(ref)
		}
		m.notice = t.ID + " has no sandbox"
		return nil
	}
	if r, ok := m.current(); ok {
		return m.openLogsOf(r.Ref())
	}
	return nil
}

func (m *Model) openLogsOf(ref sandbox.Ref) tea.Cmd {
	ctx, stop := context.WithCancel(m.ctx)
	l := &log{ctx: ctx, stop: stop, tail: &tail{more: make(chan struct{}, 1)}, hit: -1}
	m.page = &page{title: verbLogs + " " + ref.String(), verb: verbLogs, ref: ref, log: l}
	m.leaveLog()
	m.log = l
	read := func() tea.Msg {
		m.source.Follow(ctx, ref, firstLines, l.tail.push)
		l.tail.end()
		return nil
	}
	return tea.Batch(read, l.next)
}

// leaveLog ends the reader of a log that is not shown any more.
func (m *Model) leaveLog() {
	if m.log != nil && (m.page == nil || m.page.log != m.log) {
		m.log.stop()
		m.log = nil
	}
}

// takeLog adds lines to the page, which follows them where its end is on the screen.
func (m *Model) takeLog(msg logMsg) tea.Cmd {
	l := msg.log
	if m.log != l {
		return nil
	}
	p := m.page
	following := l.following(m)
	if msg.dropped > 0 { // the lines before are older than those: a log has no hole without a word
		l.dropped += len(p.lines) + msg.dropped
		p.lines, p.tones = p.lines[:0], p.tones[:0]
	}
	for _, line := range msg.lines {
		p.lines, p.tones = append(p.lines, line.text), append(p.tones, line.tone)
		l.note(l.dropped+len(p.lines)-1, line.text)
	}
	if excess := len(p.lines) - mostLogLines; excess > 0 {
		p.lines, p.tones = slices.Delete(p.lines, 0, excess), slices.Delete(p.tones, 0, excess)
		l.dropped += excess
		p.top -= excess
	}
	gone, _ := slices.BinarySearch(l.hits, l.dropped)
	l.hits = l.hits[gone:]
	l.fresh += msg.dropped + len(msg.lines)
	if following {
		p.top, l.fresh = len(p.lines), 0
	}
	p.top = max(0, min(p.top, len(p.lines)-m.pageHeight()))
	if l.ended = msg.ended; l.ended {
		return nil
	}
	return l.next
}

// following reports whether the page moves with what comes.
func (l *log) following(m *Model) bool {
	return !l.paused && m.page.top >= len(m.page.lines)-m.pageHeight()
}

// searching reports whether keys go into what is searched for.
func (m *Model) searching() bool { return m.page != nil && m.page.log != nil && m.page.log.searching }

func (m *Model) startTyping() tea.Cmd {
	if m.page != nil && m.page.log != nil {
		m.page.log.searching, m.page.log.needle = true, ""
		m.search()
		m.page.log.searching = true
		return nil
	}
	m.typing = true
	return nil
}

func (m *Model) togglePause() tea.Cmd {
	if m.page == nil || m.page.log == nil {
		m.paused = !m.paused
		return nil
	}
	if l := m.page.log; l.paused {
		return m.toEnd()
	}
	m.page.log.paused = true
	return nil
}

func (m *Model) toEnd() tea.Cmd {
	if m.page != nil && m.page.log != nil {
		m.page.log.paused, m.page.log.fresh = false, 0
	}
	return move(farAway)(m)
}

// search finds the lines with the needle, and goes to the first one on the screen or below, else to the last.
func (m *Model) search() {
	l := m.page.log
	l.searching, l.hits, l.hit = false, nil, -1
	for i, text := range m.page.lines {
		l.note(l.dropped+i, text)
	}
	if len(l.hits) == 0 {
		return
	}
	i, _ := slices.BinarySearch(l.hits, l.dropped+m.page.top)
	m.show(l.hits[min(i, len(l.hits)-1)])
}

// note adds a line to the hits where it has the needle.
func (l *log) note(number int, text string) {
	if from, _ := l.find(text); from >= 0 && !l.searching {
		l.hits = append(l.hits, number)
	}
}

// find is where a text has the needle, capitals and small letters being the same; -1 = nowhere.
func (l *log) find(text string) (from, to int) {
	if l.needle == "" {
		return -1, -1
	}
	folded, needle := strings.ToLower(text), strings.ToLower(l.needle)
	if len(folded) != len(text) { // places would not be those of the text
		folded, needle = text, l.needle
	}
	from = strings.Index(folded, needle)
	return from, from + len(needle)
}

// jump goes to the next hit, or to the one before, round the end.
func (m *Model) jump(by int) {
	if m.page == nil || m.page.log == nil || len(m.page.log.hits) == 0 {
		return
	}
	l := m.page.log
	i, found := slices.BinarySearch(l.hits, l.hit)
	if !found && by > 0 {
		i--
	}
	n := len(l.hits)
	m.show(l.hits[((i+by)%n+n)%n])
}

// show goes to a line of the log, which stays there.
func (m *Model) show(number int) {
	p, l := m.page, m.page.log
	l.hit, l.paused = number, true
	if at := number - l.dropped; at < p.top || at >= p.top+m.pageHeight() {
		p.top = max(0, min(at-m.pageHeight()/2, len(p.lines)-m.pageHeight()))
	}
}

// logKeys are the keys of the last line.
func (m *Model) logKeys() string {
	var words []string
	for _, key := range [][2]string{{"back", "back"}, {"down", "move"}, {"last", "follow"}, {"pause", "pause"}, {"filter", "search"}, {"next_hit", "next"}, {"previous_hit", "before"}, {"quit", "quit"}} {
		words = append(words, m.keyOf(key[0])+" "+key[1])
	}
	return strings.Join(words, "  ")
}

// logLines draws the page of a log, its state in the title.
func (m *Model) logLines() []string {
	p, l, height := m.page, m.page.log, m.pageHeight()
	lines := []string{m.lineIn(m.pageWidth(), say(p.title+"  ", output.Plain), say(l.state(m), output.Muted))}
	end := min(len(p.lines), p.top+height)
	for i := p.top; i < end; i++ {
		lines = append(lines, m.logLine(i))
	}
	return m.fill(lines, height+1)
}

// state says whether the log is followed, what came meanwhile, what is not kept and what is searched for.
func (l *log) state(m *Model) string {
	var words []string
	fresh := ""
	if l.fresh > 0 {
		fresh = ", " + ops.GroupedNumber(l.fresh) + " new"
	}
	switch {
	case l.ended:
		words = append(words, "ended")
	case l.paused:
		words = append(words, "paused"+fresh)
	case l.following(m):
		words = append(words, "following")
	default:
		words = append(words, "above the end"+fresh)
	}
	if len(m.page.lines) == 0 && !l.ended {
		words = append(words, "no output yet")
	}
	switch place, found := slices.BinarySearch(l.hits, l.hit); {
	case l.searching:
		words = append(words, "/"+l.needle+"_")
	case l.needle == "":
	case found:
		words = append(words, fmt.Sprintf("/%s  %d of %d", l.needle, place+1, len(l.hits)))
	case len(l.hits) > 0:
		words = append(words, fmt.Sprintf("/%s  %d lines", l.needle, len(l.hits)))
	default:
		words = append(words, "/"+l.needle+"  not found")
	}
	if l.dropped > 0 {
		words = append(words, "dropped "+ops.GroupedNumber(l.dropped)+" lines")
	}
	return strings.Join(words, "  ")
}

// bytesPerCell is more than a cell has.
const bytesPerCell = 16

// logLine draws a line of the log. While something is searched for, lines with it have a mark.
func (m *Model) logLine(i int) string {
	l, text, tone := m.page.log, m.page.lines[i], m.page.tones[i]
	wide := bytesPerCell * m.pageWidth() // the rest has no room, and costs time
	if l.needle == "" || l.searching {
		return m.lineIn(m.pageWidth(), say(clip(text, wide), tone))
	}
	from, to := l.find(text)
	if from < 0 {
		return m.lineIn(m.pageWidth(), say("  ", output.Plain), say(clip(text, wide), tone))
	}
	mark := "* "
	if l.dropped+i == l.hit {
		mark = "> "
	}
	start := 0
	if from > m.pageWidth()/2 { // the hit is not cut away
		for start = from - m.pageWidth()/4; !utf8.RuneStart(text[start]); start++ {
		}
		mark += "..."
	}
	return m.lineIn(m.pageWidth(), say(mark, output.Plain), say(text[start:from], tone), say(text[from:to], output.Good), say(clip(text[to:], wide), tone))
}
