package task

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		kind    lineKind
		session string
	}{
		`{"type":"assistant","session_id":"s-1"}`:     {agentMessage, "s-1"},
		`{"event_type":"agent.assistant_message"}`:    {agentMessage, ""},
		`{"type":"system","session_id":"a_b.c:d"}`:    {agentEvent, "a_b.c:d"},
		`{"type":"result","session_id":"x; rm -rf"}`:  {agentEvent, ""},
		`{"type":"user","session_id":"$(reboot)"}`:    {agentEvent, ""},
		`{"session_id":"s-1"}`:                        {plainLine, ""},
		`{"type":3}`:                                  {plainLine, ""},
		`{"type":"assistant"`:                         {plainLine, ""},
		`[1]`:                                         {plainLine, ""},
		"\U0001F4CD Session: 0b1c":                    {plainLine, "0b1c"},
		"\u2699\uFE0F  Session: 0b1c":                 {plainLine, "0b1c"},
		"the Session: 0b1c":                           {plainLine, ""},
		`Session: 0b1c`:                               {plainLine, "0b1c"},
		`Session: ` + strings.Repeat("x", 129):        {plainLine, ""},
		`session: 0b1c`:                               {plainLine, ""},
		``:                                            {plainLine, ""},
		` {"type":"assistant"}`:                       {plainLine, ""},
		`{"type":"assistant","session_id":"a\u0000"}`: {agentMessage, ""},
	} {
		kind, session := parseAgentLine(line)
		assert.Equal(t, want.kind, kind, line)
		assert.Equal(t, want.session, session, line)
	}
}

// FuzzMessage parses arbitrary output: the name of a session may be passed to a program.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{`{"type":"assistant","session_id":"s-1"}`, `Session: 1`, `{`, `{"event_type":"assistant_message"}`, "Session: \x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		kind, session := parseAgentLine(line)
		assert.Contains(t, []lineKind{plainLine, agentEvent, agentMessage}, kind)
		assert.LessOrEqual(t, len(session), 128)
		for _, r := range session {
			assert.True(t, r < 128 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_.:", r)), "%q", session)
		}
		if !strings.HasPrefix(line, "{") {
			assert.Equal(t, plainLine, kind)
		}
	})
}

type heard struct{ lines []string }

func (h *heard) Changed(Task)             {}
func (h *heard) Message(string)           {}
func (h *heard) Output(l sandbox.LogLine) { h.lines = append(h.lines, l.Text) }

// TestAStreamIsTakenUpAgainWhereItWas cuts a stream at every line: no line is lost or
// repeated, also where several have one time.
func TestAStreamIsTakenUpAgainWhereItWas(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return noon().Add(time.Duration(s) * time.Second) }
	stream := []sandbox.LogLine{
		{At: at(1), Text: "a"}, {At: at(2), Text: "b"}, {At: at(2), Text: "c"}, {At: at(2), Text: "d"}, {At: at(3), Text: "e"}, {At: at(3), Text: "f"},
	}
	for cut := range len(stream) + 1 {
		for second := range len(stream) + 1 {
			ear := &heard{}
			p := newOutputTracker(noon(), ear)
			for _, limit := range []int{cut, second, len(stream)} {
				since := p.resumeTime()
				for _, l := range stream {
					if l.At.Before(since) {
						continue
					}
					if limit--; limit < 0 {
						break
					}
					p.addLine(l)
				}
			}
			assert.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, ear.lines, "cut after %d and %d", cut, second)
		}
	}
}

// TestAnOpenLineIsOutput: bytes without a line end keep a program from being silent, but not those that
// a resumed stream reports again.
func TestAnOpenLineIsOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ear := &heard{}
		p := newOutputTracker(noon(), ear)
		bytes := &lineWriter{p: p, stream: "stderr"}
		for i, tc := range []struct {
			add    func()
			output bool
		}{
			{func() { p.addLine(sandbox.LogLine{Stream: "stdout", Text: "\r1", OpenBytes: 2}) }, true},
			{func() { p.addLine(sandbox.LogLine{Stream: "stdout", Text: "\r2", OpenBytes: 4}) }, true},
			{func() { p.addLine(sandbox.LogLine{Stream: "stdout", Text: "\r1\r2", OpenBytes: 4}) }, false},
			{func() { p.addLine(sandbox.LogLine{Stream: "stdout", Text: "\r1\r2 done"}) }, true},
			{func() { p.addLine(sandbox.LogLine{Stream: "stdout", Text: "\r1\r2", OpenBytes: 4}) }, true},
			{func() { _, _ = bytes.Write([]byte(".")) }, true},
			{func() { _, _ = bytes.Write([]byte(".")) }, true},
		} {
			<-time.After(time.Minute)
			tc.add()
			assert.Equal(t, tc.output, p.silentTime() == 0, "piece %d", i)
		}
		assert.Equal(t, []string{"\r1\r2 done"}, ear.lines, "a line is shown when it ends")
	})
}

func TestLinesOfAStreamOfBytes(t *testing.T) {
	t.Parallel()
	ear := &heard{}
	l := &lineWriter{p: newOutputTracker(noon(), ear), stream: "stdout"}
	for _, part := range []string{"a", "b\nc\n", "", "\n", "d", strings.Repeat("x", longestLine), "e\n", "rest"} {
		n, err := l.Write([]byte(part))
		require.NoError(t, err)
		assert.Equal(t, len(part), n)
	}
	l.flushRest()
	l.flushRest()
	assert.Equal(t, []string{"ab", "c", "", "d" + strings.Repeat("x", longestLine), "e", "rest"}, ear.lines)
}
