package agentlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"sbx/internal/jsontext"
)

// Options say what is kept of each event.
type Options struct {
	Diffs  bool // the text of each diff
	Keys   bool // what Compare needs
	Places bool // of a file only where its events are: Session.Each reads them again

	Growing bool // the file is read while it is written
}

// MaxDiffs is how many bytes of diffs a session keeps that cannot be read again when they are shown.
const MaxDiffs = 64 << 20

// Decoder decodes events. It is not safe for use by several goroutines.
type Decoder struct {
	Options

	frame   []jsontext.Member
	words   map[string]string // each word that comes often is kept once
	diffs   int               // bytes of diffs that were kept
	leftOut int               // diffs that were not
}

// Raw is an event as its source has it.
type Raw struct {
	ID, Sandbox, Type, Source string
	At                        time.Time
	Data                      json.RawMessage
	Detail                    string // one line, of an event without data
}

// ErrNoEvent is a line that is JSON and no event.
var ErrNoEvent = errors.New("it is no event")

// DecodeLine decodes one line. An error is ErrNoEvent, or that of the JSON.
func (d *Decoder) DecodeLine(line []byte) (Event, error) {
	f, err := d.readObject(line)
	if err != nil {
		return Event{}, err
	}
	raw, err := frameOf(f)
	if err != nil {
		return Event{}, err
	}
	return d.Decode(raw), nil
}

// readObject reads the members of a line, which are valid until the next one is read. Errors as of DecodeLine.
func (d *Decoder) readObject(line []byte) (fields, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return nil, ErrNoEvent
	}
	members, err := jsontext.Members(d.frame[:0], line)
	d.frame = members
	return members, err
}

// frameOf is all of an event but its data, which are a part of its line. An error is ErrNoEvent.
func frameOf(f fields) (Raw, error) {
	raw := Raw{
		ID: f.id(), Sandbox: f.text("sandbox_id"), Type: f.text("event_type"), Source: f.text("source"),
		At: f.moment("created_at"), Data: f.first("event_data"),
	}
	if raw.Type == "" && raw.Data == nil {
		return Raw{}, ErrNoEvent
	}
	if raw.At.IsZero() {
		raw.At = object(raw.Data).moment("timestamp")
	}
	return raw, nil
}

// Decode decodes an event whose frame was read already.
func (d *Decoder) Decode(raw Raw) Event {
	data := object(raw.Data)
	e := Event{
		ID: strings.Clone(raw.ID), Sandbox: d.word(raw.Sandbox), Type: d.word(raw.Type), Source: d.word(raw.Source), At: raw.At,
		Turn: data.number("turn"), Failed: failed(raw.Type, data),
	}
	switch e.Type {
	case ToolUse, ToolCompleted, UserToolResult:
		e.Tool = d.word(data.text("tool", "tool_name"))
	case FileEdited:
		d.readChange(&e, data)
	case Completed:
		e.End = &End{
			Success: data.boolean("success"), Turns: data.number("turns"), ExitCode: data.number("exit_code"), StopReason: clip(data.text("stop_reason")),
			Cost: data.decimal("cost"),
		}
	}
	if e.What = describe(&e, data); e.What == "" && len(raw.Data) > len("{}") {
		e.What = clip(cmp.Or(textOf(raw.Data), string(raw.Data))) // whatever there is
	}
	e.What = strings.Clone(cmp.Or(e.What, clip(raw.Detail))) // of a long text nothing else is kept
	if d.Keys {
		e.keys = keysOf(&e, data, raw.Data)
	}
	return e
}

// readChange reads a change of a file. Where its lines are not counted, they are those of a whole diff.
func (d *Decoder) readChange(e *Event, data fields) {
	e.Path, e.Change = d.word(clipPath(data.text("file_path", "path"))), d.word(clip(data.text("change_type")))
	e.Added, e.Removed = data.number("lines_added"), data.number("lines_removed")
	raw := data.first("full_diff")
	if scalarIsEmpty(raw) {
		raw, e.DiffPreview = data.first("diff_preview"), true
	}
	if scalarIsEmpty(raw) {
		e.DiffPreview = false
		return
	}
	counted := e.Added != nil && e.Removed != nil
	if counted && !d.Diffs {
		e.DiffBytes = len(raw)
		return
	}
	diff := scalar(raw)
	e.DiffBytes = len(diff)
	if !counted && !e.DiffPreview {
		added, removed := CountLines(diff)
		e.Added, e.Removed = &added, &removed
	}
	if !d.Diffs {
		return
	}
	if e.DiffLeftOut = d.diffs+len(diff) > MaxDiffs; e.DiffLeftOut {
		d.leftOut++
		return
	}
	d.diffs += len(diff)
	e.Diff = diff
}

func scalarIsEmpty(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == `""` || raw[0] != '"'
}

// clipPath bounds a path by its beginning, since its end tells more.
func clipPath(path string) string {
	const longest = 1000
	if len(path) <= longest {
		return path
	}
	return "..." + strings.ToValidUTF8(path[len(path)-longest:], "")
}

// word is a text of which there are few: each is in memory once.
func (d *Decoder) word(text string) string {
	const most = 10_000
	if known, ok := d.words[text]; ok {
		return known
	}
	if d.words == nil {
		d.words = map[string]string{}
	}
	text = strings.Clone(text)
	if len(d.words) < most {
		d.words[text] = text
	}
	return text
}

// failed says that an event reports an error, a failed tool or a failed end.
func failed(kind string, data fields) bool {
	if strings.HasSuffix(kind, "error") || strings.HasSuffix(kind, "failed") {
		return true
	}
	switch kind {
	case ToolCompleted, UserToolResult:
		wrong := data.boolean("is_error")
		return wrong != nil && *wrong || data.text("error") != ""
	case Completed:
		success := data.boolean("success")
		return success != nil && !*success
	}
	return false
}

// CountLines counts the lines that a unified diff adds and removes.
func CountLines(diff string) (added, removed int64) {
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	return added, removed
}
