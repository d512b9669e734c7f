package agentlog

import (
	"cmp"
	"strconv"
	"strings"
)

// codexLine is a line that is translated.
type codexLine struct {
	*codex
	fields

	raw   Raw
	steps []step
}

func (l *codexLine) add(kind, id string, d *data) *step {
	l.steps = append(l.steps, newStep(l.raw, kind, id, d))
	return &l.steps[len(l.steps)-1]
}

// addMessage adds a message, which two kinds of lines tell.
func (l *codexLine) addMessage(kind, text string, from origin) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	var d data
	d.text("content", text)
	l.addEcho(kind, kind, text, "", from, &d)
}

// readItem reads what the model and the client sent each other.
func (l *codexLine) readItem() {
	id := l.text("call_id", "id")
	switch l.text("type") {
	case "message":
		l.readMessage()
	case "function_call":
		l.readCall(id, l.text("name"), object([]byte(l.text("arguments"))), l.text("arguments"))
	case "custom_tool_call":
		l.readCall(id, l.text("name"), nil, l.text("input"))
	case "local_shell_call":
		l.readCall(id, "local_shell", object(l.value("action")), "")
	case "web_search_call":
		l.readSearch(object(l.value("action")).text("query"), fromItem)
	case "function_call_output", "custom_tool_call_output":
		l.readOutput(id)
	}
}

// readMessage reads a message. What the client tells the model beside the prompts is left out.
func (l *codexLine) readMessage() {
	text := allText(l.value("content"))
	switch l.text("role") {
	case "assistant":
		l.addMessage(AssistantMessage, text, fromItem)
	case "user":
		if !startsWithAny(strings.TrimSpace(text), "<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<skill", "<collaboration_mode>",
			"<subagent_notification>", "<INSTRUCTIONS>", "# AGENTS.md instructions") {
			l.addMessage(UserMessage, text, fromItem)
		}
	}
}

// allText are the texts of the blocks of a message.
func allText(content []byte) string {
	var texts []string
	for _, block := range elements(content) {
		f := object(block)
		if text := f.text("text"); text != "" {
			texts = append(texts, text)
		} else if kind := f.text("type"); kind == "input_image" || kind == "image" {
			texts = append(texts, "(image)")
		}
	}
	if texts == nil {
		return scalar(content)
	}
	return strings.Join(texts, "\n")
}

// readCall reads a call of a tool. Input is nil where it is a text.
func (l *codexLine) readCall(id, tool string, input fields, text string) {
	made := call{tool: tool, at: l.raw.At, command: commandOf(input)}
	var d data
	d.text("tool", tool)
	d.text("tool_use_id", id)
	patch := text
	switch {
	case made.command != "":
		patch = made.command
		var in data
		in.text("command", made.command)
		in.text("cwd", input.text("workdir", "cwd"))
		d.raw("input", in.end())
	case input != nil:
		patch = input.text("input", "patch")
		d.raw("input", []byte(text))
	default:
		d.text("input", patchTitle(text))
	}
	if strings.Contains(patch, patchBegin) {
		made.changes = l.holdChanges(patchChanges(patch, l.folder))
	}
	if id != "" {
		l.calls[id] = made
	}
	l.addEcho(ToolUse, "use", made.command, id, fromItem, &d)
}

// holdChanges bounds the diffs that calls hold until their output tells whether they were made.
func (c *codex) holdChanges(changes []fileChange) []fileChange {
	for i := range changes {
		if c.patches += len(changes[i].diff); c.patches > MaxDiffs {
			changes[i].diff = ""
		}
	}
	return changes
}

// commandOf is the command of a shell: a text, or the words of one. A shell that is only there to read the
// command is left out. "" = it is no shell.
func commandOf(input fields) string {
	raw := input.first("command", "cmd")
	words := make([]string, 0, 4)
	for _, word := range elements(raw) {
		words = append(words, scalar(word))
	}
	if len(words) == 0 {
		return scalar(raw)
	}
	if len(words) == 3 && (words[1] == "-lc" || words[1] == "-c") {
		return words[2]
	}
	return strings.Join(words, " ")
}

// readOutput reads the answer of a tool, and the changes of a patch that it applied.
func (l *codexLine) readOutput(id string) {
	made := l.calls[id]
	text, code := codexOutput(l.value("output"))
	if running := code == nil && strings.HasPrefix(text, "Process running with session ID"); running && made.command != "" {
		return // its end comes with a later answer
	}
	l.addDone(id, made, text, code, fromItem)
	if code != nil && *code == 0 || code == nil && strings.HasPrefix(text, "Success") {
		l.steps = append(l.steps, changeSteps(made.changes, joinID("text", id), l.raw.Source, l.raw.At, fromItem)...)
	}
}

// addDone adds the answer of a tool; code nil = it tells no exit code.
func (l *codexLine) addDone(id string, made call, output string, code *int64, from origin) {
	var d data
	d.text("tool", made.tool)
	d.text("tool_use_id", id)
	d.text("tool_response", output)
	if code != nil {
		d.number("exit_code", *code)
		if *code != 0 {
			d.boolean("is_error", true)
		}
	}
	if took := l.raw.At.Sub(made.at); !made.at.IsZero() && !l.raw.At.IsZero() && took >= 0 {
		d.number("duration_ms", took.Milliseconds())
	}
	l.addEcho(ToolCompleted, "done", cmp.Or(made.command, id), id, from, &d)
}

// addEcho adds a step that several kinds of lines tell. What is the same in all of them.
func (l *codexLine) addEcho(kind, step, what, id string, from origin, d *data) {
	s := l.add(kind, joinID(id, step+strconv.Itoa(int(from))), d)
	if what != "" {
		s.echo, s.origin = step+"\x00"+what, from
	}
}

// codexOutput is the output of a tool and its exit code; nil = it tells none. Older outputs are JSON in a text, newer ones
// have a short head of lines.
func codexOutput(raw []byte) (text string, code *int64) {
	if text = scalar(raw); text == "" {
		text = allText(raw)
	}
	if f := object([]byte(text)); f.first("metadata") != nil {
		return f.text("output"), object(f.value("metadata")).number("exit_code")
	}
	rest := text
	for range 8 { // lines of the head
		line, after, more := strings.Cut(rest, "\n")
		for _, mark := range []string{"Exit code: ", "Process exited with code "} {
			if number, is := strings.CutPrefix(line, mark); is {
				if n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64); err == nil {
					code = &n
				}
			}
		}
		switch {
		case strings.HasPrefix(line, "Process running with session ID"):
			return line, nil
		case line == "Output:":
			return after, code
		case !more || !startsWithAny(line, "Exit code:", "Process exited", "Wall time:", "Chunk ID:", "Original token count:", "Total output lines:", "Warning:"):
			return text, code
		}
		rest = after
	}
	return text, code
}

func (l *codexLine) readSearch(query string, from origin) {
	var d, in data
	d.text("tool", "web_search")
	in.text("query", query)
	d.raw("input", in.end())
	l.addEcho(ToolUse, "search", query, "", from, &d)
}
