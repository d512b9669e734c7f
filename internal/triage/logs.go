package triage

import (
	"strings"
	"time"

	"sbx/internal/sandbox"
)

const (
	repeatWindow = 50  // lines that are compared with each other
	sampleBytes  = 200 // longest part of a line that is kept as a sample
	maxHits      = 32  // different patterns that are kept
)

// LogFindings is what the rules need of a log.
type LogFindings struct {
	// Complete says that the log holds the output of every program in the sandbox. Only
	// then do its silence and its repetition show the programs' state.
	Complete bool

	// ReadAt is when the log was asked for, by the clock of the sandbox: it proves no silence after that. Zero = now.
	ReadAt time.Time

	Lines   int       // lines seen, empty ones too
	Last    time.Time // of the newest line; zero without times
	Errors  int       // lines that report an error (R35, R61)
	Error   string    // the last of them, shortened; untrusted text
	Hits    []Hit     // patterns seen, in order of first sight
	Call    string    // the target of the external call in the last line (R73); "" = not named
	Calling bool      // the last line begins an external call
	Repeat  Repeat    // the most frequent line at the end of the log (R36)
}

// provesSilence reports whether a log would have shown later output, and when: it holds all
// output, and either there is none or the time of the newest line is known, by itself or by its
// file. The time of a line without one is not known, whatever the record of the sandbox says.
func (f *LogFindings) provesSilence() bool {
	return f != nil && f.Complete && (f.Lines == 0 || !f.Last.IsZero())
}

// Hit is one pattern in a log.
type Hit struct {
	Pattern Pattern
	Count   int
	Last    time.Time
	Sample  string // the last such line, shortened; untrusted text
}

// Repeat is the most frequent of the last 50 lines.
type Repeat struct {
	Line  string // one of them, shortened; untrusted text
	Count int
}

// LogWatch reads a log line by line and keeps findings, never the log. It is not safe for
// concurrent use.
type LogWatch struct {
	matcher *Matcher
	found   LogFindings
	window  []uint64 // hashes of the last lines, a ring buffer
	at      int
	repeats map[uint64]*Repeat
}

// NewLogWatch starts to watch a log.
func NewLogWatch(m *Matcher) *LogWatch {
	return &LogWatch{matcher: m, window: make([]uint64, 0, repeatWindow), repeats: map[uint64]*Repeat{}}
}

// ReadLines returns the findings of a whole log.
func ReadLines(m *Matcher, lines []sandbox.LogLine) LogFindings {
	w := NewLogWatch(m)
	for _, l := range lines {
		w.Add(l)
	}
	return w.Findings()
}

// Add takes the next line and returns the pattern in it, if any.
func (w *LogWatch) Add(l sandbox.LogLine) (Pattern, bool) {
	w.found.Lines++
	for _, at := range []time.Time{l.At, l.NotAfter} {
		if at.After(w.found.Last) {
			w.found.Last = at
		}
	}
	seen := w.matcher.scanLine(l.Text)
	if seen.hasMark(markError) && !seen.hasMark(markNoError) {
		w.found.Errors++
		w.found.Error = shortenLine(l.Text)
	}
	key := lineShape(l.Text)
	if key != 0 && !seen.hasMark(markBeat) { // heartbeats repeat by design and show nothing of the work
		w.found.Call, w.found.Calling = externalCall(l.Text, seen)
		w.countRepeat(key, l.Text)
	}
	if seen.pattern < 0 {
		return Pattern{}, false
	}
	p := w.matcher.patterns[seen.pattern]
	w.countHit(p, l)
	return p, true
}

func (w *LogWatch) countHit(p Pattern, l sandbox.LogLine) {
	for i := range w.found.Hits {
		if h := &w.found.Hits[i]; h.Pattern.ID == p.ID {
			h.Count, h.Last, h.Sample = h.Count+1, l.At, shortenLine(l.Text)
			return
		}
	}
	if len(w.found.Hits) < maxHits {
		w.found.Hits = append(w.found.Hits, Hit{Pattern: p, Count: 1, Last: l.At, Sample: shortenLine(l.Text)})
	}
}

// countRepeat counts the new line and removes the line that leaves the window.
func (w *LogWatch) countRepeat(key uint64, text string) {
	if len(w.window) < repeatWindow {
		w.window = append(w.window, key)
	} else {
		old := w.window[w.at]
		if r := w.repeats[old]; r.Count > 1 {
			r.Count--
		} else {
			delete(w.repeats, old)
		}
		w.window[w.at] = key
		w.at = (w.at + 1) % repeatWindow
	}
	if r := w.repeats[key]; r != nil {
		r.Count++
		return
	}
	w.repeats[key] = &Repeat{Line: shortenLine(text), Count: 1}
}

// Findings returns the findings so far.
func (w *LogWatch) Findings() LogFindings {
	out := w.found
	out.Hits = append([]Hit(nil), w.found.Hits...)
	for _, r := range w.repeats {
		if r.Count > out.Repeat.Count || r.Count == out.Repeat.Count && r.Line < out.Repeat.Line {
			out.Repeat = *r
		}
	}
	return out
}

// shortenLine copies the beginning of a line, so that a long line can be freed.
func shortenLine(text string) string {
	if len(text) > sampleBytes {
		text = strings.ToValidUTF8(text[:sampleBytes], "") + "..."
	}
	return strings.Clone(text)
}

// The constants of the 64-bit FNV-1a hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// lineShape is a hash of a line without the parts that differ between two iterations of a
// loop: words that contain a digit (times, counters, ids) are equal, letter case and runs
// of white space are ignored. Lines of equal shape count as the same line (R36). An empty
// line has shape 0.
func lineShape(line string) uint64 {
	line = line[:min(len(line), maxScan)]
	hash, space, begun := uint64(fnvOffset), false, false
	add := func(b byte) { hash = (hash ^ uint64(b)) * fnvPrime }
	for i := 0; i < len(line); {
		switch b := line[i]; {
		case b <= ' ':
			space = begun
			i++
			continue
		case space:
			add(' ')
			space = false
		}
		begun = true
		if !wordByte(line[i]) {
			add(line[i])
			i++
			continue
		}
		end, numbered := wordEnd(line, i)
		if numbered {
			add('#')
		} else {
			for ; i < end; i++ {
				add(line[i] | 0x20)
			}
		}
		i = end
	}
	if !begun {
		return 0
	}
	return hash
}

// wordEnd returns the end of the word that starts at i, and whether it contains a digit.
func wordEnd(line string, i int) (end int, numbered bool) {
	for ; i < len(line) && wordByte(line[i]); i++ {
		numbered = numbered || isDigit(line[i])
	}
	return i, numbered
}
