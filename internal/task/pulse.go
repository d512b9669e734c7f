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

// pulse is what an attempt shows of its life while it is followed.
type pulse struct {
	ear    Ear
	readAt time.Time // the store's clock when following began
	began  time.Time // this process's clock then

	mu       sync.Mutex
	heard    time.Time // this process's clock at the last output
	written  time.Time // the provider's clock of the last line
	repeated int       // lines of exactly that time
	skip     int       // of them, how many come once more after a cut
	messages int
	spoke    bool // as an agent does: lines that are messages
	session  string
	extended bool
}

func newPulse(readAt time.Time, ear Ear) *pulse {
	now := time.Now()
	return &pulse{ear: ear, readAt: readAt, began: now, heard: now}
}

// since is where a stream that was cut is to be taken up again.
func (p *pulse) since() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skip = p.repeated
	return p.written
}

// line takes a line of output.
func (p *pulse) line(l sandbox.LogLine) {
	if l.Gap != nil { // no word of the program
		if p.ear != nil {
			p.ear.Output(l)
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
	p.heard = time.Now()
	kind, session := message(l.Text)
	if kind == aMessage {
		p.messages++
	}
	p.spoke = p.spoke || kind != noEvent
	p.session = cmp.Or(session, p.session)
	p.mu.Unlock()
	if p.ear != nil {
		p.ear.Output(l)
	}
}

// silence is for how long nothing was heard.
func (p *pulse) silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.heard)
}

// extend notes that silence was longer than its limit and no stillness.
func (p *pulse) extend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extended = true
}

// ended is what is known at the end.
func (p *pulse) ended(exit sandbox.Exit, u sandbox.Usage) Ended {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := Ended{Exit: exit, Usage: u, Session: p.session, Extended: p.extended}
	if p.heard.After(p.began) {
		e.OutputAt = p.readAt.Add(p.heard.Sub(p.began))
	}
	if p.spoke {
		n := p.messages
		e.Messages = &n
	}
	return e
}

// speech is what a line of an agent's output is.
type speech int

const (
	noEvent speech = iota
	anEvent
	aMessage
)

// message reads a line of an agent's stream or session file: a JSON object with a
// type, or the line that names the session (S0-3). The assistant's messages are what
// counts as progress (S0-24).
func message(line string) (kind speech, session string) {
	marker := strings.TrimLeftFunc(line, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsSymbol(r) || unicode.IsMark(r) || r == '\u200d'
	})
	if name, found := strings.CutPrefix(marker, "Session: "); found { // often behind an emoji
		return noEvent, named(name)
	}
	if !strings.HasPrefix(line, "{") {
		return noEvent, ""
	}
	var event struct {
		Type    string `json:"type"`
		Event   string `json:"event_type"`
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(line), &event) != nil {
		return noEvent, ""
	}
	switch word := event.Type + event.Event; {
	case word == "":
		return noEvent, ""
	case word == "assistant", strings.HasSuffix(word, "assistant_message"):
		return aMessage, named(event.Session)
	}
	return anEvent, named(event.Session)
}

// named is a session's name, where it is one that may be handed on.
func named(word string) string {
	word = strings.TrimSpace(word)
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	if len(word) > 128 || strings.Trim(word, plain) != "" {
		return ""
	}
	return word
}
