package triage

import (
	"strings"
	"time"

	"sbx/internal/sandbox"
)

const (
	repeatWindow = 50  // so many lines are compared with each other
	sampleBytes  = 200 // so much of a line is kept as a sample
	maxHits      = 32  // so many different patterns are kept; there are not many more
)

// LogFindings is what the rules want to know of a log.
type LogFindings struct {
	// Complete says that the log holds what every program of the sandbox writes. Only
	// then is its silence theirs, and its repetition too.
	Complete bool

	Lines   int       // lines seen, empty ones too
	Last    time.Time // of the newest line; zero without times
	Errors  int       // lines that report an error (ACCEPTANCE R35, R61)
	Error   string    // the last of them, shortened; untrusted text
	Hits    []Hit     // patterns seen, in order of first sight
	Call    string    // whom the last line calls outside (R73); "" for an unnamed one too
	Calling bool      // the last line begins an external call
	Repeat  Repeat    // what the end of the log repeats most (R36)
}

// Hit is one pattern in a log.
type Hit struct {
	Pattern Pattern
	Count   int
	Last    time.Time
	Sample  string // the last such line, shortened; untrusted text
}

// Repeat is a line that comes again and again among the last 50.
type Repeat struct {
	Line  string // one of them, shortened; untrusted text
	Count int
}

// Has says that a pattern of this id was seen.
func (f LogFindings) Has(id string) bool {
	for _, h := range f.Hits {
		if h.Pattern.ID == id {
			return true
		}
	}
	return false
}

// LogWatch reads a log line by line and keeps findings, never the log. It
// belongs to one goroutine.
type LogWatch struct {
	matcher *Matcher
	found   LogFindings
	window  []uint64 // shapes of the last lines, as a ring
	at      int
	rounds  map[uint64]*Repeat
}

// NewLogWatch starts to watch a log.
func NewLogWatch(m *Matcher) *LogWatch {
	return &LogWatch{matcher: m, window: make([]uint64, 0, repeatWindow), rounds: map[uint64]*Repeat{}}
}

// ReadLines gives the findings of a whole log.
func ReadLines(m *Matcher, lines []sandbox.LogLine) LogFindings {
	w := NewLogWatch(m)
	for _, l := range lines {
		w.Add(l)
	}
	return w.Findings()
}

// Add takes the next line and gives the pattern in it, if there is one.
func (w *LogWatch) Add(l sandbox.LogLine) (Pattern, bool) {
	w.found.Lines++
	if l.At.After(w.found.Last) {
		w.found.Last = l.At
	}
	seen := w.matcher.scan(l.Text)
	if seen.has(markError) && !seen.has(markNoError) {
		w.found.Errors++
		w.found.Error = sample(l.Text)
	}
	key := shape(l.Text)
	if key != 0 && !seen.has(markBeat) { // a heartbeat repeats by nature, and tells nothing of the work
		w.found.Call, w.found.Calling = w.matcher.callIn(l.Text, seen)
		w.repeat(key, l.Text)
	}
	if seen.pattern < 0 {
		return Pattern{}, false
	}
	p := w.matcher.patterns[seen.pattern]
	w.hit(p, l)
	return p, true
}

func (w *LogWatch) hit(p Pattern, l sandbox.LogLine) {
	for i := range w.found.Hits {
		if h := &w.found.Hits[i]; h.Pattern.ID == p.ID {
			h.Count, h.Last, h.Sample = h.Count+1, l.At, sample(l.Text)
			return
		}
	}
	if len(w.found.Hits) < maxHits {
		w.found.Hits = append(w.found.Hits, Hit{Pattern: p, Count: 1, Last: l.At, Sample: sample(l.Text)})
	}
}

// repeat counts the line in, and the one that leaves the window out.
func (w *LogWatch) repeat(key uint64, text string) {
	if len(w.window) < repeatWindow {
		w.window = append(w.window, key)
	} else {
		old := w.window[w.at]
		if r := w.rounds[old]; r.Count > 1 {
			r.Count--
		} else {
			delete(w.rounds, old)
		}
		w.window[w.at] = key
		w.at = (w.at + 1) % repeatWindow
	}
	if r := w.rounds[key]; r != nil {
		r.Count++
		return
	}
	w.rounds[key] = &Repeat{Line: sample(text), Count: 1}
}

// Findings gives what is known so far.
func (w *LogWatch) Findings() LogFindings {
	out := w.found
	out.Hits = append([]Hit(nil), w.found.Hits...)
	for _, r := range w.rounds {
		if r.Count > out.Repeat.Count || r.Count == out.Repeat.Count && r.Line < out.Repeat.Line {
			out.Repeat = *r
		}
	}
	return out
}

// sample copies the beginning of a line, so that a long line can be freed.
func sample(text string) string {
	if len(text) > sampleBytes {
		text = strings.ToValidUTF8(text[:sampleBytes], "") + "..."
	}
	return strings.Clone(text)
}
