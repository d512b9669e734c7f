package triage

import "strings"

// maxScan is how many bytes of a line are looked at. What a line says stands at
// its beginning; a 10 MB line must not cost more than a screenful.
const maxScan = 64 << 10

// mark is a group of words that a scan reports besides patterns.
type mark uint8

const (
	markNone     mark = 0
	markCall     mark = 1 << iota // an external call begins
	markAnswered                  // the line tells of an answer, or of the program's own address
	markError                     // an error is reported
	markNoError                   // the absence of errors is reported
	markBeat                      // a heartbeat
)

// literal is one text of the automaton.
type literal struct {
	text        string // lower case
	pattern     int    // index into the patterns; -1 for a mark
	mark        mark
	left, right bool // must not touch a letter, digit or underscore on that side
	upper       bool // only in capitals: GET, but not get
}

// Matcher finds patterns in log lines. It is built once and then only read, so
// any number of goroutines may use it.
type Matcher struct {
	patterns []Pattern
	literals []literal
	auto     automaton
}

// NewMatcher prepares all Patterns; it takes about a millisecond.
func NewMatcher() *Matcher {
	m := &Matcher{patterns: Patterns()}
	for i, p := range m.patterns {
		for _, text := range p.literals {
			m.literals = append(m.literals, bounded(text, i, markNone))
		}
	}
	m.literals = append(m.literals, markLiterals()...)
	texts := make([]string, len(m.literals))
	for i, l := range m.literals {
		texts[i] = l.text
	}
	m.auto = build(texts)
	return m
}

// bounded makes a literal that matches whole words only.
func bounded(text string, pattern int, m mark) literal {
	return literal{text: text, pattern: pattern, mark: m, left: wordByte(text[0]), right: wordByte(text[len(text)-1])}
}

func markLiterals() []literal {
	var all []literal
	for _, group := range []struct {
		mark  mark
		words string
	}{
		{markCall, "calling|request to|requesting|fetch|fetching|connecting to|waiting for response|sending request|http://|https://|ws://|wss://"},
		{markAnswered, "listening|responded|response from|response received|got response|received|succeeded|serving|running at|available at|completed|finished"},
		{markNoError, "no error|no errors|0 errors|0 error|without error|without errors|errors: 0|error: null|error: none|error: nil|0 failed|failed: 0|0 failures"},
		{markBeat, "heartbeat|keepalive|keep-alive"},
	} {
		for word := range strings.SplitSeq(group.words, "|") {
			all = append(all, bounded(word, -1, group.mark))
		}
	}
	for _, verb := range []string{"get", "post", "put", "patch", "delete", "head"} {
		l := bounded(verb, -1, markCall)
		l.upper = true
		all = append(all, l)
	}
	for _, word := range []string{"error", "errors", "exception", "exceptions", "traceback", "fatal", "panic", "failed", "failure", "uncaught"} {
		l := bounded(word, -1, markError)
		l.left = false // TypeError, java.lang.RuntimeException
		all = append(all, l)
	}
	return all
}

// Match gives the first of Patterns that the line shows. Letters match in
// either case, words only as a whole. Only the first 64 KiB are looked at.
func (m *Matcher) Match(line string) (Pattern, bool) {
	found := m.scan(line)
	if found.pattern < 0 {
		return Pattern{}, false
	}
	return m.patterns[found.pattern], true
}

// scanned is what one pass over a line found.
type scanned struct {
	pattern int // index, -1 = none
	marks   mark
	callEnd int // just behind the first word that announces a call
}

func (s scanned) has(m mark) bool { return s.marks&m != 0 }

func (m *Matcher) scan(line string) scanned {
	line = line[:min(len(line), maxScan)]
	found := scanned{pattern: -1}
	state := 0
	for i := range len(line) {
		if state = m.auto.step(state, line[i]); !m.auto.ends[state] {
			continue
		}
		for _, id := range m.auto.out[state] {
			if l := &m.literals[id]; l.fits(line, i+1) {
				found.take(l, i+1)
			}
		}
	}
	return found
}

func (s *scanned) take(l *literal, end int) {
	if l.mark == markNone {
		if s.pattern < 0 || l.pattern < s.pattern {
			s.pattern = l.pattern
		}
		return
	}
	if l.mark == markCall && !s.has(markCall) {
		s.callEnd = end
	}
	s.marks |= l.mark
}

// fits says whether the literal, which ends before end, stands there as it must.
func (l *literal) fits(line string, end int) bool {
	start := end - len(l.text)
	switch {
	case l.right && end < len(line) && wordByte(line[end]):
		return false
	case l.left && start > 0 && wordByte(line[start-1]) && !afterColour(line[:start]):
		return false
	case l.upper:
		return strings.ToUpper(l.text) == line[start:end]
	}
	return true
}

// afterColour says that text ends with a terminal colour sequence, whose final
// letter is no part of the next word.
func afterColour(text string) bool {
	i := len(text) - 1
	if text[i] != 'm' {
		return false
	}
	for i--; i >= 0 && (text[i] >= '0' && text[i] <= '9' || text[i] == ';'); i-- {
	}
	return i >= 1 && text[i] == '[' && text[i-1] == 0x1b
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
