package task

import (
	"cmp"
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unicode"

	"sbx/internal/sandbox"
)

// outputTracker is what an attempt shows of its life while it is followed.
type outputTracker struct {
	observer Observer
	readAt   time.Time // the store's clock when following began
	began    time.Time // this process's clock then

	mu         sync.Mutex
	lastOutput time.Time // this process's clock at the last output
	written    time.Time // the provider's clock of the last line
	repeated   int       // lines of exactly that time
	skip       int       // of them, how many come once more after a cut
	messages   int
	agentSeen  bool // as an agent does: lines that are messages
	session    string
	extended   bool
}

func newOutputTracker(readAt time.Time, ear Observer) *outputTracker {
	now := time.Now()
	return &outputTracker{observer: ear, readAt: readAt, began: now, lastOutput: now}
}

// resumeTime is where a stream that was cut is to be taken up again.
func (p *outputTracker) resumeTime() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skip = p.repeated
	return p.written
}

// addLine takes a line of output.
func (p *outputTracker) addLine(l sandbox.LogLine) {
	if l.Gap != nil { // no word of the program
		if p.observer != nil {
			p.observer.Output(l)
		}
		return
	}
	p.mu.Lock()
	if p.skip > 0 && !l.At.After(p.written) {
		p.skip--
		p.mu.Unlock()
		return
	}
	if l.At.Equal(p.written) {
		p.repeated++
	} else {
		p.written, p.repeated = l.At, 1
	}
	p.lastOutput = time.Now()
	kind, session := parseAgentLine(l.Text)
	if kind == agentMessage {
		p.messages++
	}
	p.agentSeen = p.agentSeen || kind != plainLine
	p.session = cmp.Or(session, p.session)
	p.mu.Unlock()
	if p.observer != nil {
		p.observer.Output(l)
	}
}

// silentTime is for how long nothing was heard.
func (p *outputTracker) silentTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.lastOutput)
}

// markExtended notes that silence was longer than its limit and no stillness.
func (p *outputTracker) markExtended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extended = true
}

// endReport is what is known at the end.
func (p *outputTracker) endReport(exit sandbox.Exit, u sandbox.Usage) Ended {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := Ended{Exit: exit, Usage: u, Session: p.session, Extended: p.extended}
	if p.lastOutput.After(p.began) {
		e.OutputAt = p.readAt.Add(p.lastOutput.Sub(p.began))
	}
	if p.agentSeen {
		n := p.messages
		e.Messages = &n
	}
	return e
}

// lineKind is what a line of an agent's output is.
type lineKind int

const (
	plainLine lineKind = iota
	agentEvent
	agentMessage
)

// parseAgentLine reads a line of an agent's stream or session file: a JSON object with a
// type, or the line that names the session (S0-3). The assistant's messages are what
// counts as progress (S0-24).
func parseAgentLine(line string) (kind lineKind, session string) {
	marker := strings.TrimLeftFunc(line, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsSymbol(r) || unicode.IsMark(r) || r == '\u200d'
	})
	if name, found := strings.CutPrefix(marker, "Session: "); found { // often behind an emoji
		return plainLine, sessionName(name)
	}
	if !strings.HasPrefix(line, "{") {
		return plainLine, ""
	}
	var event struct {
		Type    string `json:"type"`
		Event   string `json:"event_type"`
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(line), &event) != nil {
		return plainLine, ""
	}
	switch word := event.Type + event.Event; {
	case word == "":
		return plainLine, ""
	case word == "assistant", strings.HasSuffix(word, "assistant_message"):
		return agentMessage, sessionName(event.Session)
	}
	return agentEvent, sessionName(event.Session)
}

// sessionName is a session's name, where it is one that may be handed on.
func sessionName(word string) string {
	word = strings.TrimSpace(word)
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	if len(word) > 128 || strings.Trim(word, plain) != "" {
		return ""
	}
	return word
}
