package agentlog

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/jsontext"
)

// Form is the form of the lines of a session.
type Form string

// The closed list. A session has one form, that of its first line that tells.
const (
	FormEvents     Form = "events"      // of OmoiOS: an event a line
	FormClaudeCode Form = "claude-code" // a transcript that Claude Code writes below ~/.claude/projects
	FormCodex      Form = "codex"       // a rollout file that Codex writes below ~/.codex/sessions
)

// Title is the name of a form for people.
func (f Form) Title() string {
	switch f {
	case FormClaudeCode:
		return "Claude Code"
	case FormCodex:
		return "Codex"
	case FormEvents:
	}
	return "OmoiOS"
}

// translator turns the lines of a transcript into events. Both forms are internal to their makers and change
// from release to release, so each value is read by itself, and a line of an unknown type is no error.
type translator interface {
	// note reads a line for the first time, in the order of the file: it counts tokens and finds copied history.
	note(line fields) lineKind
	// translate gives the events of a line. It gives the same ones when the line is read again.
	translate(line fields) []step
	// tokens are what all lines together used; nil = none says.
	tokens() *Tokens
}

// lineKind is what a line of a transcript is.
type lineKind struct {
	copied  bool   // history of another session, which this one was forked from
	unknown string // the type that is not known; "" = it is known
	session string // the id of its session; "" = it does not say
}

// step is an event of a transcript.
type step struct {
	Raw

	// A transcript tells some steps in several kinds of lines, which share no id. Steps with one echo are
	// told once: the nth of one origin is the nth of each other. "" = it is told in one kind of line only.
	echo   string
	origin origin
}

// newStep is a step of a line, of which raw has the source and the time.
func newStep(raw Raw, kind, id string, d *data) step {
	raw.Type, raw.ID, raw.Data = kind, id, d.end()
	return step{Raw: raw}
}

// origin is the kind of line that tells a step.
type origin uint8

const (
	fromItem  origin = iota // what the model and the client sent each other
	fromEvent               // what the client reports of it
	fromTurn                // what the client reports of a whole item, from Codex 0.147
	origins                 // how many there are
)

// echoes counts the steps with one echo.
type echoes struct {
	seen  [origins]int32 // by each origin
	shown int32
}

// isEcho says that another origin has told the step before.
func (c *Collector) isEcho(s *step) bool {
	if s.echo == "" {
		return false
	}
	if c.echoes == nil {
		c.echoes = map[uint64]echoes{}
	}
	key := c.sum(s.echo)
	e := c.echoes[key]
	e.seen[s.origin]++
	again := e.seen[s.origin] <= e.shown
	if !again {
		e.shown++
	}
	c.echoes[key] = e
	return again
}

// setForm sets the form of the session, if a line tells it.
func (s *Session) setForm(line fields) {
	switch {
	case line.first("event_type", "event_data") != nil:
		s.Form = FormEvents
	case isCodexLine(line):
		s.Form, s.translator = FormCodex, newCodex()
	case isClaudeLine(line):
		s.Form, s.translator = FormClaudeCode, newClaude()
	}
}

// addTranscriptLine adds the events of a line of a transcript.
func (c *Collector) addTranscriptLine(line fields, text []byte, number int, start int64) {
	kind := c.session.translator.note(line)
	c.noteSession(kind.session)
	switch {
	case kind.copied:
		c.session.Copied.add(number)
		return
	case kind.unknown != "":
		c.noteUnknown(kind.unknown, number)
		return
	}
	steps, repeated := c.session.translator.translate(line), 0
	for i := range steps {
		if known, _ := c.repeats(steps[i].ID, 0); known {
			repeated++
			continue
		}
		if !c.isEcho(&steps[i]) {
			c.addEvent(steps[i].Raw, place{start: start, size: int32(len(text)), line: int32(number), step: uint16(i)})
		}
	}
	if repeated > 0 && repeated == len(steps) {
		c.session.Repeated.add(number)
	}
}

// maxNames is how many unknown types, and sessions, a session keeps by name.
const maxNames = 20

func (c *Collector) noteUnknown(name string, line int) {
	c.session.Unknown.add(line)
	c.session.UnknownTypes = addName(c.session.UnknownTypes, clip(name))
}

func (c *Collector) noteSession(id string) {
	if id != "" {
		c.session.Sessions = addName(c.session.Sessions, clip(id))
	}
}

func addName(names []string, name string) []string {
	if len(names) == maxNames || slices.Contains(names, name) {
		return names
	}
	return append(names, strings.Clone(name))
}

// Tokens are what the calls of the model used. The four figures do not overlap.
type Tokens struct {
	Calls      int   // answers of the model; of Codex how often its figure grew
	Input      int64 // read anew
	CacheRead  int64 // read from the cache
	CacheWrite int64 // written into the cache; 0 at Codex, which does not tell it
	Output     int64 // written, with what the model thought
	Rule       string
}

// call is a call of a tool.
type call struct {
	tool    string
	at      time.Time
	command string       // of a shell, its command
	changes []fileChange // of a patch, what it is meant to change
}

// shells are the tools that run a command, by the names that agents give them.
func isShell(tool string) bool {
	switch tool {
	case "Bash", "bash", "shell", "exec_command", "local_shell", "container.exec":
		return true
	}
	return false
}

// editors are the tools whose effect is the change of a file, which is an event of its own.
func isEditor(tool string) bool {
	switch tool {
	case "Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch":
		return true
	}
	return false
}

// joinID is the id of a part of what has an id; "" where that has none.
func joinID(id, part string) string {
	if id == "" {
		return ""
	}
	return id + "\x00" + part
}

// data are the members of an event, in the form of OmoiOS.
type data struct{ bytes.Buffer }

func (d *data) key(key string) {
	separator := byte(',')
	if d.Len() == 0 {
		separator = '{'
	}
	d.WriteByte(separator)
	d.WriteString(`"` + key + `":`)
}

// text adds a text, unless it is empty.
func (d *data) text(key, text string) {
	if text == "" {
		return
	}
	d.key(key)
	d.Write(jsontext.AppendText(d.AvailableBuffer(), text))
}

func (d *data) number(key string, n int64) {
	d.key(key)
	d.Write(strconv.AppendInt(d.AvailableBuffer(), n, 10))
}

func (d *data) boolean(key string, value bool) {
	d.key(key)
	d.Write(strconv.AppendBool(d.AvailableBuffer(), value))
}

// raw adds a value as it is written, unless there is none.
func (d *data) raw(key string, value []byte) {
	if len(value) > 0 {
		d.key(key)
		d.Write(value)
	}
}

func (d *data) end() []byte {
	if d.Len() == 0 {
		return []byte("{}")
	}
	d.WriteByte('}')
	return d.Bytes()
}

// startsWithAny says that a text starts with one of some beginnings.
func startsWithAny(text string, beginnings ...string) bool {
	for _, beginning := range beginnings {
		if strings.HasPrefix(text, beginning) {
			return true
		}
	}
	return false
}
