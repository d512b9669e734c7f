package agentlog

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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

// formOf is the form of a line and its translator; false = the line does not tell.
func formOf(line fields) (Form, translator, bool) {
	switch {
	case line.first("event_type", "event_data") != nil:
		return FormEvents, nil, true
	case isCodexLine(line):
		return FormCodex, newCodex(), true
	case isClaudeLine(line):
		return FormClaudeCode, newClaude(), true
	}
	return "", nil, false
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
	for _, known := range names {
		if known == name {
			return names
		}
	}
	if len(names) == maxNames {
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

// fileChange is what a tool changed in a file.
type fileChange struct {
	path, change   string // change is created, modified, deleted or moved
	added, removed int64
	known          bool   // the lines are counted
	diff           string // unified; "" = it is not told
}

// newChange is a change whose body, the lines of its hunks, is told.
func newChange(path, change, body string) fileChange {
	c := fileChange{path: path, change: change, known: body != "" || change == changeCreated}
	for line := range strings.Lines(body) {
		switch line[0] {
		case '+':
			c.added++
		case '-':
			c.removed++
		}
	}
	name := strings.TrimPrefix(path, "/")
	from, to := "a/"+name, "b/"+name
	switch change {
	case changeCreated:
		from = "/dev/null"
	case changeDeleted:
		to = "/dev/null"
	}
	if body != "" {
		c.diff = "--- " + from + "\n+++ " + to + "\n" + body
	}
	return c
}

const (
	changeCreated  = "created"
	changeModified = "modified"
	changeDeleted  = "deleted"
	changeMoved    = "moved"
)

// wholeFile are the hunks that add all lines of a file with the sign +, or remove them with -.
func wholeFile(sign byte, content string) string {
	if content == "" {
		return ""
	}
	lines := strings.Count(content, "\n")
	if !strings.HasSuffix(content, "\n") {
		lines++
	}
	span := "0,0 +1," + strconv.Itoa(lines)
	if sign == '-' {
		span = "1," + strconv.Itoa(lines) + " +0,0"
	}
	var b strings.Builder
	b.Grow(len(content) + lines + 64)
	b.WriteString("@@ -" + span + " @@\n")
	for line := range strings.Lines(content) {
		b.WriteByte(sign)
		b.WriteString(line)
	}
	if !strings.HasSuffix(content, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return b.String()
}

// changeSteps are the events of changes of files.
func changeSteps(changes []fileChange, id, source string, at time.Time, from origin) []step {
	steps := make([]step, 0, len(changes))
	for _, c := range changes {
		var d data
		d.text("file_path", c.path)
		d.text("change_type", c.change)
		if c.known {
			d.number("lines_added", c.added)
			d.number("lines_removed", c.removed)
		}
		d.text("full_diff", c.diff)
		steps = append(steps, step{Raw: Raw{ID: joinID(id, c.path), Type: FileEdited, Source: source, At: at, Data: d.end()}, echo: "change\x00" + c.path, origin: from})
	}
	return steps
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
	quoted, _ := jsontext.AppendQuote(d.AvailableBuffer(), text) // an error says that it was not UTF-8, which it is then
	d.Write(quoted)
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

// within is a path as seen from the folder in which the session began; one outside it is as it was.
func within(folder, path string) string {
	if folder == "" || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
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
