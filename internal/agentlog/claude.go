package agentlog

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"

	"sbx/internal/jsontext"
)

// claude translates transcripts of Claude Code, as versions 1.0 to 2.1 write them, and what
// `claude -p --output-format stream-json` prints.
type claude struct {
	folder string // the first cwd
	calls  map[string]call
	usage  map[string]claudeUsage // of each answer of the model, by its message and request
	asked  map[string]string      // the first request that told a message
}

// claudeUsage is what one answer used.
type claudeUsage struct{ input, cacheRead, cacheWrite, output int64 }

func (u claudeUsage) sum() int64 { return u.input + u.cacheRead + u.cacheWrite + u.output }

func newClaude() *claude {
	return &claude{calls: map[string]call{}, usage: map[string]claudeUsage{}, asked: map[string]string{}}
}

// claudeKind says what a type of line holds: steps of the work, or the state of the client.
type claudeKind uint8

const (
	claudeUnknown claudeKind = iota
	claudeStep               // its content is translated
	claudeState              // nothing that the agent did
)

func claudeKindOf(kind string) claudeKind {
	switch kind {
	case "user", "assistant", "system", "attachment", "result":
		return claudeStep
	case "summary", "queue-operation", "last-prompt", "mode", "permission-mode", "ai-title", "custom-title", "agent-name", "agent-setting",
		"file-history-snapshot", "file-history-delta", "pr-link", "atis-latch", "relocated", "worktree-state", "started", "progress", "bridge-session",
		"frame-link", "fork-context-ref", "rewind-pointer", "stream_event", "tool_progress", "rate_limit_event":
		return claudeState
	}
	return claudeUnknown
}

// isClaudeLine says that a line is one of a transcript of Claude Code: of a known type, with a member that such lines have.
func isClaudeLine(line fields) bool {
	return claudeKindOf(line.text("type")) != claudeUnknown &&
		line.first("sessionId", "session_id", "uuid", "leafUuid", "messageId", "message", "snapshot") != nil
}

func (c *claude) note(line fields) lineKind {
	kind := lineKind{session: line.text("sessionId", "session_id")}
	if c.folder == "" {
		c.folder = line.text("cwd")
	}
	name := line.text("type")
	if claudeKindOf(name) == claudeUnknown {
		kind.unknown = name
		if name == "" {
			kind.unknown = "without a type"
		}
		return kind
	}
	if kind.copied = line.first("forkedFrom") != nil; !kind.copied && name == "assistant" {
		c.noteUsage(line)
	}
	return kind
}

// noteUsage counts an answer of the model. Each of its lines repeats the usage, and the first may have a part of it: the
// largest counts. A question beside the work (/btw) replays the answer before it with another request, on a side chain.
func (c *claude) noteUsage(line fields) {
	message := object(line.value("message"))
	usage := object(message.value("usage"))
	id, request := message.text("id"), line.text("requestId")
	if usage == nil || message.text("model") == "<synthetic>" {
		return
	}
	if id == "" {
		id = line.text("uuid")
	}
	if first, known := c.asked[id]; !known {
		c.asked[id] = strings.Clone(request)
	} else if first != request && isTrue(line, "isSidechain") {
		return
	}
	used := claudeUsage{count(usage, "input_tokens"), count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens"), count(usage, "output_tokens")}
	key := id + "\x00" + request
	if before, known := c.usage[key]; !known || used.sum() > before.sum() {
		c.usage[key] = used
	}
}

func (c *claude) tokens() *Tokens {
	if len(c.usage) == 0 {
		return nil
	}
	t := &Tokens{Calls: len(c.usage), Rule: "the largest usage of each message and request"}
	for _, u := range c.usage {
		t.Input += u.input
		t.CacheRead += u.cacheRead
		t.CacheWrite += u.cacheWrite
		t.Output += u.output
	}
	return t
}

func (c *claude) translate(line fields) []step {
	l := claudeLine{claude: c, fields: line, raw: Raw{Source: string(FormClaudeCode), At: line.moment("timestamp")}, id: line.text("uuid")}
	if agent := line.text("agentId"); agent != "" {
		l.raw.Source += "/" + agent
	} else if isTrue(line, "isSidechain") || line.text("parent_tool_use_id") != "" {
		l.raw.Source += "/sidechain"
	}
	switch line.text("type") {
	case "user":
		l.readUser()
	case "assistant":
		l.readAssistant()
	case "system":
		l.readSystem()
	case "attachment":
		l.readHook(object(line.value("attachment")))
	case "result":
		l.readResult()
	}
	return l.steps
}

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

// changes are what a tool changed, by its result. A string says that it failed or was denied.
func (l *claudeLine) changes(result fields) []fileChange {
	path := within(l.folder, result.text("filePath"))
	if path == "" {
		return nil
	}
	content := result.value("content")
	switch {
	case result.text("type") == "create" || content != nil && string(result.value("originalFile")) == "null":
		return []fileChange{newChange(path, changeCreated, wholeFile('+', scalar(content)))}
	case result.first("structuredPatch") != nil:
		return []fileChange{newChange(path, changeModified, claudeHunks(result.value("structuredPatch")))}
	case result.first("oldString", "newString") != nil:
		body := "@@ @@\n" + signed('-', result.text("oldString")) + signed('+', result.text("newString"))
		return []fileChange{newChange(path, changeModified, body)}
	}
	return nil
}

// signed is each line of a text behind a sign.
func signed(sign byte, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteByte(sign)
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// claudeHunks writes a structured patch as a unified diff.
func claudeHunks(patch []byte) string {
	var hunks []struct {
		OldStart, OldLines, NewStart, NewLines int
		Lines                                  []string
	}
	if jsontext.Unmarshal(patch, &hunks) != nil {
		return ""
	}
	var b strings.Builder
	for _, h := range hunks {
		b.WriteString("@@ -" + strconv.Itoa(h.OldStart) + "," + strconv.Itoa(h.OldLines) + " +" + strconv.Itoa(h.NewStart) + "," + strconv.Itoa(h.NewLines) + " @@\n")
		for _, line := range h.Lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
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

// elements are the values of a list; none for any other value.
func elements(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || jsontext.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
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
