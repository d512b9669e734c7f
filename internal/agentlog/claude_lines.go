package agentlog

import (
	"cmp"
	"hash/fnv"
	"strconv"
	"strings"
)

// claudeLine is a line that is translated.
type claudeLine struct {
	*claude
	fields

	raw   Raw
	id    string
	steps []step
}

func (l *claudeLine) add(kind, id string, d *data) {
	l.steps = append(l.steps, newStep(l.raw, kind, id, d))
}

// addText adds an event that is a text, a JSON string.
func (l *claudeLine) addText(kind, id string, content []byte) {
	var d data
	d.raw("content", content)
	l.add(kind, id, &d)
}

// part is the id of the nth part of the line.
func (l *claudeLine) part(n int) string { return joinID(l.id, strconv.Itoa(n)) }

// readUser reads what was told to the model: a prompt, or the answers of tools. Text that the client added is left out.
func (l *claudeLine) readUser() {
	if isTrue(l.fields, "isMeta") || isTrue(l.fields, "isCompactSummary") {
		return
	}
	content := object(l.value("message")).value("content")
	if len(content) > 0 && content[0] == '"' {
		l.readPrompt(content, 0)
		return
	}
	for n, block := range elements(content) {
		f := object(block)
		switch f.text("type") {
		case "text":
			l.readPrompt(f.value("text"), n)
		case "tool_result":
			l.readToolResult(f, n)
		case "image", "document":
			l.addText(UserMessage, l.part(n), []byte(`"(`+f.text("type")+`)"`))
		}
	}
}

func (l *claudeLine) readPrompt(content []byte, n int) {
	text := strings.TrimSpace(scalar(content))
	if command, is := between(text, "<command-name>", "</command-name>"); is {
		arguments, _ := between(text, "<command-args>", "</command-args>")
		var d data
		d.text("content", strings.TrimSpace(command+" "+arguments))
		l.add(UserMessage, l.part(n), &d)
		return
	}
	if text == "" || startsWithAny(text, "<system-reminder>", "<local-command", "<command-", "<bash-", "Caveat: The messages below") {
		return
	}
	if strings.HasPrefix(text, "<task-notification>") {
		summary, _ := between(text, "<summary>", "</summary>")
		var d data
		d.text("message", cmp.Or(summary, text))
		l.add(SystemMessage, l.part(n), &d)
		return
	}
	l.addText(UserMessage, l.part(n), content)
}

// between is the text between two marks, and whether a text starts with the first and has the second.
func between(text, from, to string) (string, bool) {
	_, rest, found := strings.Cut(text, from)
	inside, _, ended := strings.Cut(rest, to)
	return inside, found && ended
}

// readToolResult reads the answer of a tool, and the change of a file that it made.
func (l *claudeLine) readToolResult(block fields, n int) {
	id := block.text("tool_use_id")
	made := l.calls[id]
	var d data
	d.text("tool", made.tool)
	d.text("tool_use_id", id)
	failed := isTrue(block, "is_error")
	if failed {
		d.boolean("is_error", true)
	}
	content := block.value("content")
	if failed {
		if code, output, is := claudeExit(textOf(content)); is {
			d.number("exit_code", code)
			d.text("tool_response", output)
			content = nil
		}
	}
	d.raw("tool_response", content)
	if took := l.raw.At.Sub(made.at); !made.at.IsZero() && !l.raw.At.IsZero() && took >= 0 {
		d.number("duration_ms", took.Milliseconds())
	}
	done := l.part(n)
	if id != "" {
		done = "result\x00" + id
	}
	l.add(ToolCompleted, done, &d)
	if !failed {
		l.steps = append(l.steps, changeSteps(l.changes(object(l.value("toolUseResult"))), done, l.raw.Source, l.raw.At, fromItem)...)
	}
}

// claudeExit is the exit code that the answer of a failed command begins with, and the output behind it. A command that
// succeeded has none.
func claudeExit(text string) (code int64, output string, is bool) {
	rest, found := strings.CutPrefix(strings.TrimPrefix(text, "Error: "), "Exit code ")
	if !found {
		return 0, "", false
	}
	number, output, _ := strings.Cut(rest, "\n")
	code, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	return code, output, err == nil
}

// readAssistant reads an answer of the model: a block of it, or all of them. A block that came before has its id again.
func (l *claudeLine) readAssistant() {
	message := object(l.value("message"))
	if isTrue(l.fields, "isApiErrorMessage") {
		var d data
		d.text("error", textOf(message.value("content")))
		d.text("status", l.text("apiErrorStatus"))
		d.text("kind", l.text("error"))
		l.add("agent.error", l.id, &d)
		return
	}
	if message.text("model") == "<synthetic>" {
		return
	}
	id := message.text("id")
	for n, block := range elements(message.value("content")) {
		f := object(block)
		switch f.text("type") {
		case "text":
			l.addText(AssistantMessage, l.block(id, block, n), f.value("text"))
		case "tool_use", "server_tool_use", "mcp_tool_use":
			l.readToolUse(f, l.block(id, block, n))
		}
	}
}

// block is the id of a block of an answer: a copy of it in a later line has the same one, and other ids around it.
func (l *claudeLine) block(message string, block []byte, n int) string {
	if message == "" {
		return l.part(n)
	}
	h := fnv.New64a()
	_, _ = h.Write(block)
	return message + "\x00" + strconv.FormatUint(h.Sum64(), 16)
}

func (l *claudeLine) readToolUse(block fields, id string) {
	use := block.text("id")
	input := block.value("input")
	made := call{tool: block.text("name"), at: l.raw.At}
	if use != "" {
		l.calls[use] = made
		id = "use\x00" + use
	}
	var d data
	d.text("tool", made.tool)
	d.text("tool_use_id", use)
	d.raw("input", input)
	l.add(ToolUse, id, &d)
}

// readSystem reads what the client reports of itself. What is no step of the work is left out.
func (l *claudeLine) readSystem() {
	var d data
	kind := l.text("subtype")
	d.text("subtype", kind)
	switch kind {
	case "api_error":
		failure := object(l.value("error"))
		d.text("error", join(" ", failure.text("status"), clip(textOf(l.value("error")))))
		d.text("attempt", l.text("retryAttempt"))
		l.add("agent.api_error", l.id, &d)
	case "compact_boundary":
		meta := object(l.first("compactMetadata", "compact_metadata"))
		d.text("message", join(", ", "the conversation was compacted", meta.text("trigger"), tokensText(meta)))
		l.add(SystemMessage, l.id, &d)
	case "turn_duration":
		step := newStep(l.raw, Completed, l.id, &data{})
		step.Detail = "the turn ended"
		l.steps = append(l.steps, step)
	case "init":
		d.text("message", join(", ", l.text("model"), l.text("cwd")))
		l.add(Started, l.id, &d)
	case "informational", "scheduled_task_fire", "agents_killed", "away_summary":
		d.raw("message", l.value("content"))
		l.add(SystemMessage, l.id, &d)
	}
}

func tokensText(meta fields) string {
	before, after := meta.text("preTokens", "pre_tokens"), meta.text("postTokens", "post_tokens")
	if before == "" {
		return ""
	}
	return join(" to ", "from "+before, after) + " tokens"
}

// readHook reads the failure of a hook; hooks that succeeded and other attachments are no steps.
func (l *claudeLine) readHook(f fields) {
	switch f.text("type") {
	case "hook_non_blocking_error", "hook_blocking_error", "hook_cancelled":
		var d data
		d.text("error", join(": ", join(" ", f.text("hookEvent"), f.text("hookName")), firstLine(f.text("stderr", "stdout", "blockingError"))))
		l.add("agent.hook_error", l.id, &d)
	}
}

// readResult reads the end of a run that printed its steps, the only one that this form tells.
func (l *claudeLine) readResult() {
	var d data
	if failed := l.boolean("is_error"); failed != nil {
		d.boolean("success", !*failed)
	}
	d.raw("turns", l.value("num_turns"))
	d.raw("cost", l.value("total_cost_usd"))
	if reason := l.text("subtype"); reason != "success" {
		d.text("stop_reason", reason)
	}
	l.add(Completed, l.id, &d)
}

func isTrue(f fields, key string) bool {
	value := f.boolean(key)
	return value != nil && *value
}

// count is a figure of tokens; 0 = it is not told, or is below 0.
func count(f fields, key string) int64 {
	if n := f.number(key); n != nil && *n > 0 {
		return *n
	}
	return 0
}
