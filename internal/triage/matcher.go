package triage

import (
	"strings"
	"sync"
)

// maxScan is how many bytes of a line are scanned, so that a line of 10 MB costs no more
// than a screenful.
const maxScan = 64 << 10

// mark is a group of words that a scan reports in addition to patterns.
type mark uint8

const (
	markNone     mark = 0
	markCall     mark = 1 << iota // an external call begins
	markAnswered                  // an answer, or the program's own address
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

// Matcher finds patterns in log lines. It is read-only and safe for concurrent use.
type Matcher struct {
	patterns []Pattern
	literals []literal
	auto     automaton
}

// NewMatcher is the matcher of all Patterns. The first call prepares it, in about one millisecond.
func NewMatcher() *Matcher { return allPatterns() }

var allPatterns = sync.OnceValue(buildMatcher) //nolint:gochecknoglobals // prepared once, never changed

func buildMatcher() *Matcher {
	m := &Matcher{patterns: Patterns()}
	for i, p := range m.patterns {
		for _, text := range p.literals {
			m.literals = append(m.literals, wholeWord(text, i, markNone))
		}
	}
	m.literals = append(m.literals, markLiterals()...)
	texts := make([]string, len(m.literals))
	for i, l := range m.literals {
		texts[i] = l.text
	}
	m.auto = buildAutomaton(texts)
	return m
}

// wholeWord makes a literal that matches whole words only.
func wholeWord(text string, pattern int, m mark) literal {
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
			all = append(all, wholeWord(word, -1, group.mark))
		}
	}
	for _, verb := range []string{"get", "post", "put", "patch", "delete", "head"} {
		l := wholeWord(verb, -1, markCall)
		l.upper = true
		all = append(all, l)
	}
	for _, word := range []string{"error", "errors", "exception", "exceptions", "traceback", "fatal", "panic", "failed", "failure", "uncaught"} {
		l := wholeWord(word, -1, markError)
		l.left = false // TypeError, java.lang.RuntimeException
		all = append(all, l)
	}
	return all
}

// Match returns the first of Patterns that occurs in the line. Letter case is ignored,
// words match only as a whole. Only the first 64 KiB are scanned.
func (m *Matcher) Match(line string) (Pattern, bool) {
	found := m.scanLine(line)
	if found.pattern < 0 {
		return Pattern{}, false
	}
	return m.patterns[found.pattern], true
}

// scanned is the result of one pass over a line.
type scanned struct {
	pattern int // index, -1 = none
	marks   mark
	callEnd int // end of the first word that announces a call
}

func (s scanned) hasMark(m mark) bool { return s.marks&m != 0 }

func (m *Matcher) scanLine(line string) scanned {
	line = line[:min(len(line), maxScan)]
	found := scanned{pattern: -1}
	state := 0
	for i := range len(line) {
		if state = m.auto.nextState(state, line[i]); !m.auto.ends[state] {
			continue
		}
		for _, id := range m.auto.out[state] {
			if l := &m.literals[id]; l.matchesAt(line, i+1) {
				found.addLiteral(l, i+1)
			}
		}
	}
	return found
}

func (s *scanned) addLiteral(l *literal, end int) {
	if l.mark == markNone {
		if s.pattern < 0 || l.pattern < s.pattern {
			s.pattern = l.pattern
		}
		return
	}
	if l.mark == markCall && !s.hasMark(markCall) {
		s.callEnd = end
	}
	s.marks |= l.mark
}

// matchesAt checks the literal's conditions on its neighbours; it ends before end.
func (l *literal) matchesAt(line string, end int) bool {
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

// afterColour reports whether text ends with a terminal colour sequence, whose final
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

// maxTarget bounds the name of a called service, in bytes.
const maxTarget = 80

// externalCall reports whether the line begins a call to an external service without also
// reporting its end, and the target: host and port where the line has an address, else
// the next word (R73). Credentials and queries of an address are left out.
func externalCall(line string, found scanned) (target string, calls bool) {
	if !found.hasMark(markCall) || found.hasMark(markAnswered) || found.hasMark(markBeat) {
		return "", false
	}
	rest := line[found.callEnd:]
	if hasStatus(rest) {
		return "", false
	}
	if host := hostIn(line); host != "" {
		return host, true
	}
	return firstWord(rest), true
}

// hostIn returns host and port of the first address in a line.
func hostIn(line string) string {
	_, rest, found := strings.Cut(line, "://")
	if !found {
		return ""
	}
	if end := strings.IndexFunc(rest, endsAuthority); end >= 0 {
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return clipTarget(strings.TrimRight(rest, ".,:;"))
}

func endsAuthority(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("/?#\\\"'`<>(){}|,;", r)
}

// firstWord returns the next word without a query or quotes around it.
func firstWord(text string) string {
	fields := strings.Fields(text[:min(len(text), 4*maxTarget)])
	if len(fields) == 0 {
		return ""
	}
	word, _, _ := strings.Cut(fields[0], "?")
	word = strings.Trim(word, ".,:;\"'`()<>")
	if at := strings.LastIndexByte(word, '@'); at >= 0 {
		word = word[at+1:]
	}
	return clipTarget(strings.ToValidUTF8(word, ""))
}

func clipTarget(text string) string { return text[:min(len(text), maxTarget)] }

// hasStatus finds a separate HTTP status, 100 to 599: the call was answered.
func hasStatus(text string) bool {
	for field := range strings.FieldsSeq(text[:min(len(text), 1<<10)]) {
		f := strings.Trim(field, "\"'()[],;:.")
		if len(f) == 3 && f[0] >= '1' && f[0] <= '5' && isDigit(f[1]) && isDigit(f[2]) {
			return true
		}
	}
	return false
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// automaton finds all literals in one pass over a text, whatever their number:
// Aho-Corasick over bytes, with ASCII letters folded to lower case.
type automaton struct {
	class [256]uint8 // byte -> column; 0 = occurs in no literal
	width int        // columns per state
	next  []uint16   // state*width + column -> state
	out   [][]int    // state -> literals that end here
	ends  []bool     // state -> whether any literal ends there; a small table that stays in the L1 cache
}

// buildAutomaton takes lower-case literals of at most 65,535 bytes in all.
func buildAutomaton(literals []string) automaton {
	a := automaton{width: 1}
	for _, l := range literals {
		for i := range len(l) {
			if a.class[l[i]] == 0 {
				a.class[l[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[c+('a'-'A')]
	}
	a.addState()
	for id, l := range literals {
		at := 0
		for i := range len(l) {
			cell := at*a.width + int(a.class[l[i]])
			if a.next[cell] == 0 {
				a.next[cell] = uint16(a.addState())
			}
			at = int(a.next[cell])
		}
		a.out[at] = append(a.out[at], id)
	}
	a.linkSuffixes()
	a.ends = make([]bool, len(a.out))
	for i, o := range a.out {
		a.ends[i] = len(o) > 0
	}
	return a
}

func (a *automaton) addState() int {
	a.next = append(a.next, make([]uint16, a.width)...)
	a.out = append(a.out, nil)
	return len(a.out) - 1
}

// linkSuffixes fills every missing transition with that of the longest proper suffix, so
// that a scan never goes back.
func (a *automaton) linkSuffixes() {
	fail := make([]int, len(a.out))
	queue := []int{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for c := range a.width {
			cell := at*a.width + c
			behind := 0
			if at != 0 {
				behind = int(a.next[fail[at]*a.width+c])
			}
			to := int(a.next[cell])
			if to == 0 {
				a.next[cell] = uint16(behind)
				continue
			}
			fail[to] = behind
			a.out[to] = append(a.out[to], a.out[behind]...)
			queue = append(queue, to)
		}
	}
}

func (a *automaton) nextState(state int, b byte) int {
	return int(a.next[state*a.width+int(a.class[b])])
}
