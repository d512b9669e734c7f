package agentlog

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"sbx/internal/jsontext"
)

// codex translates rollout files of Codex: the lines before 0.147, where each report of the client is an event of its
// own, and from 0.147 on, where it is an item_completed; also the oldest ones, which have no envelope.
type codex struct {
	folder string // the first cwd
	calls  map[string]call

	session   string    // the id of the first session_meta
	forked    bool      // it was made of another session
	ownFrom   float64   // with a known beginning of its own lines: the ordinal of the first
	copyUntil time.Time // while a copied history is read: the lines up to this time are copied

	used    Tokens
	total   codexUsage      // the last cumulative figure
	records map[string]bool // answers that told their usage themselves
	byTotal bool            // the figures are differences of the cumulative one
	patches int             // bytes of the diffs that calls hold
}

// codexUsage is a figure of tokens. Input has what came from the cache in it.
type codexUsage struct{ input, cached, output int64 }

func newCodex() *codex { return &codex{calls: map[string]call{}, records: map[string]bool{}} }

// Items that have no envelope around them in the oldest files.
var codexItems = map[string]bool{ //nolint:gochecknoglobals // a closed list
	"message": true, "reasoning": true, "function_call": true, "function_call_output": true, "custom_tool_call": true, "custom_tool_call_output": true,
	"local_shell_call": true, "web_search_call": true, "tool_search_call": true, "tool_search_output": true, "image_generation_call": true, "compaction": true, "ghost_snapshot": true,
}

// codexKindIsKnown says that a line with an envelope has a type that is known.
func codexKindIsKnown(kind string) bool {
	switch kind {
	case "session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state", "inter_agent_communication", "token_usage_record", "retained_context", "security_risk_score":
		return true
	}
	return false
}

// isCodexLine says that a line is one of a rollout file: with its envelope, or an item without one.
func isCodexLine(line fields) bool {
	kind := line.text("type")
	return line.first("payload") != nil && codexKindIsKnown(kind) || codexItems[kind] && line.first("role", "call_id", "summary", "encrypted_content") != nil ||
		line.text("record_type") == "state" || kind == "" && line.value("instructions") != nil && line.first("timestamp") != nil
}

// unwrap gives the type and the payload of a line. A line without an envelope is an item.
func unwrap(line fields) (kind string, payload fields) {
	if kind = line.text("type"); codexItems[kind] {
		return "response_item", line
	}
	return kind, object(line.value("payload"))
}

func (c *codex) note(line fields) lineKind {
	kind, payload := unwrap(line)
	at := line.moment("timestamp")
	switch {
	case line.text("record_type") != "" || kind == "" && line.value("instructions") != nil: // of the oldest files
		return lineKind{session: line.text("id")}
	case !codexKindIsKnown(kind):
		if kind == "" {
			kind = "without a type"
		}
		return lineKind{unknown: kind}
	case kind == "session_meta":
		return c.noteMeta(payload, at)
	}
	if c.isCopied(line, at) {
		if kind == "event_msg" && payload.text("type") == "token_count" {
			c.total, _ = totalOf(payload) // the figure goes on from here
		}
		return lineKind{copied: true}
	}
	if c.folder == "" {
		c.folder = payload.text("cwd")
	}
	switch kind {
	case "response_item":
		if name := payload.text("type"); !codexItems[name] {
			return lineKind{unknown: "response_item " + name}
		}
	case "event_msg":
		return c.noteEvent(payload)
	case "token_usage_record":
		c.noteRecord(payload)
	}
	return lineKind{}
}

// noteMeta reads the head of a session. The first one is that of the file; another in it is the beginning of a history
// that was copied when the session was forked, all within a second and with new times.
func (c *codex) noteMeta(payload fields, at time.Time) lineKind {
	id := payload.text("id", "session_id")
	if c.session == "" {
		c.session, c.folder = id, payload.text("cwd")
		c.forked = payload.text("forked_from_id", "parent_thread_id") != "" || object(object(payload.value("source")).value("subagent")) != nil
		if from := payload.decimal("subagent_history_start_ordinal"); from != nil {
			c.ownFrom = *from
		}
		return lineKind{session: id}
	}
	if id == c.session {
		return lineKind{session: id}
	}
	if c.forked {
		c.copyUntil = at.Add(time.Second)
		return lineKind{copied: true}
	}
	return lineKind{session: id}
}

// isCopied says that a line belongs to the history of another session.
func (c *codex) isCopied(line fields, at time.Time) bool {
	if n := line.decimal("ordinal"); n != nil && c.ownFrom > 0 {
		return *n < c.ownFrom
	}
	if c.copyUntil.IsZero() || at.After(c.copyUntil) {
		c.copyUntil = time.Time{}
		return false
	}
	return true
}

func (c *codex) noteEvent(payload fields) lineKind {
	switch name := payload.text("type"); name {
	case "token_count":
		c.noteTotal(payload)
	case "item_completed":
		if item := object(payload.value("item")).text("type"); !codexItemIsKnown(item) {
			return lineKind{unknown: "item_completed " + item}
		}
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break", "patch_apply_end", "mcp_tool_call_end",
		"web_search_end", "exec_command_end", "context_compacted", "entered_review_mode", "exited_review_mode", "thread_rolled_back", "turn_aborted", "task_started",
		"task_complete", "turn_started", "turn_complete", "sub_agent_activity", "view_image_tool_call", "image_generation_end", "error", "stream_error", "warning", "turn_diff",
		"plan_update", "thread_name_updated", "session_configured", "background_event", "undo_completed", "thread_settings_applied":
	default:
		return lineKind{unknown: "event_msg " + name}
	}
	return lineKind{}
}

func codexItemIsKnown(kind string) bool {
	switch kind {
	case "UserMessage", "AgentMessage", "Reasoning", "CommandExecution", "FileChange", "McpToolCall", "Plan", "WebSearch", "ImageView", "ImageGeneration",
		"ContextCompaction", "EnteredReviewMode", "ExitedReviewMode", "HookPrompt", "SubAgentActivity", "CollabAgentToolCall", "DynamicToolCall":
		return true
	}
	return false
}

// totalOf is the cumulative figure of a token_count; false = it has the limits alone.
func totalOf(payload fields) (codexUsage, bool) {
	total := object(object(payload.value("info")).value("total_token_usage"))
	if total == nil {
		return codexUsage{}, false
	}
	return usageOf(total), true
}

func usageOf(f fields) codexUsage {
	return codexUsage{count(f, "input_tokens"), count(f, "cached_input_tokens"), count(f, "output_tokens")}
}

// noteTotal counts by how much the cumulative figure grew. It is often written twice, and begins anew where a full
// context has set it.
func (c *codex) noteTotal(payload fields) {
	total, told := totalOf(payload)
	if !told || total == c.total || len(c.records) > 0 {
		return
	}
	grown := codexUsage{total.input - c.total.input, total.cached - c.total.cached, total.output - c.total.output}
	if grown.input < 0 || grown.output < 0 || grown.cached < 0 {
		grown = total
		if last := object(object(payload.value("info")).value("last_token_usage")); last != nil {
			grown = usageOf(last)
		}
	}
	c.total, c.byTotal = total, true
	c.addUsage(grown)
}

// noteRecord counts the usage of one answer, which the newest files tell. What was counted by the cumulative figure
// before is dropped: it tells the same.
func (c *codex) noteRecord(payload fields) {
	key := strings.Join([]string{payload.text("thread_id"), payload.text("session_id"), payload.text("response_id")}, "\x00")
	usage := object(payload.value("usage"))
	if usage == nil || c.records[key] {
		return
	}
	if c.byTotal {
		c.used, c.byTotal = Tokens{}, false
	}
	c.records[key] = true
	c.addUsage(usageOf(usage))
}

func (c *codex) addUsage(u codexUsage) {
	c.used.Calls++
	c.used.Input += max(0, u.input-u.cached)
	c.used.CacheRead += u.cached
	c.used.Output += u.output
}

func (c *codex) tokens() *Tokens {
	if c.used.Calls == 0 {
		return nil
	}
	t := c.used
	if t.Rule = "by how much the cumulative figure grew"; !c.byTotal {
		t.Rule = "the usage that each answer tells"
	}
	return &t
}

func (c *codex) translate(line fields) []step {
	kind, payload := unwrap(line)
	l := codexLine{codex: c, fields: payload, raw: Raw{Source: string(FormCodex), At: line.moment("timestamp")}}
	switch kind {
	case "session_meta":
		if payload.text("id", "session_id") == c.session {
			var d data
			d.text("message", join(", ", payload.text("originator"), payload.text("cli_version"), payload.text("cwd")))
			l.add(Started, "session\x00"+c.session, &d)
		}
	case "response_item":
		l.readItem()
	case "event_msg":
		l.readEvent()
	case "compacted":
		l.addMessage(SystemMessage, "the history was compacted", fromItem)
	}
	return l.steps
}

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

// readEvent reads what the client reports.
func (l *codexLine) readEvent() {
	id := l.text("call_id")
	switch kind := l.text("type"); kind {
	case "user_message":
		l.addMessage(UserMessage, l.text("message"), fromEvent)
	case "agent_message":
		l.addMessage(AssistantMessage, l.text("message"), fromEvent)
	case "exec_command_end":
		made := l.calls[id]
		made.command = commandOf(l.fields)
		l.addDone(id, made, l.text("aggregated_output", "stdout", "stderr"), l.number("exit_code"), fromEvent)
	case "patch_apply_end":
		l.readPatchEnd(id)
		if isTrue(l.fields, "success") {
			l.addChanges(joinID("patch", id), l.value("changes"), fromEvent)
		}
	case "mcp_tool_call_end":
		l.readMCP(id)
	case "web_search_end":
		l.readSearch(l.text("query"), fromEvent)
	case "item_completed":
		l.readTurnItem(object(l.value("item")))
	case "task_complete", "turn_complete":
		var d data
		d.boolean("success", true)
		l.add(Completed, joinID("end", l.text("turn_id")), &d)
	case "turn_aborted":
		var d data
		d.boolean("success", false)
		d.text("stop_reason", l.text("reason"))
		l.add(Completed, joinID("end", l.text("turn_id")), &d)
	case "error", "stream_error":
		var d data
		d.text("error", l.text("message"))
		l.add("agent.error", "", &d)
	case "thread_rolled_back":
		l.addMessage(SystemMessage, "turns that were rolled back: "+l.text("num_turns"), fromItem)
	}
}

// readPatchEnd reads whether a patch was applied, which its later output does not always tell.
func (l *codexLine) readPatchEnd(id string) {
	made := l.calls[id]
	var d data
	d.text("tool", cmp.Or(made.tool, "apply_patch"))
	d.text("tool_use_id", id)
	d.text("tool_response", l.text("stdout", "stderr"))
	if !isTrue(l.fields, "success") {
		d.boolean("is_error", true)
	}
	l.addEcho(ToolCompleted, "done", cmp.Or(made.command, id), id, fromEvent, &d)
}

// readMCP reads the answer of a tool of an MCP server, which a later item repeats with its id.
func (l *codexLine) readMCP(id string) {
	var d data
	d.text("tool", cmp.Or(l.calls[id].tool, object(l.value("invocation")).text("tool")))
	d.text("tool_use_id", id)
	result := object(l.value("result"))
	if failure := result.text("Err", "err"); failure != "" {
		d.text("error", failure)
	} else {
		answer := object(result.first("Ok", "ok"))
		d.raw("tool_response", answer.value("content"))
		if isTrue(answer, "is_error") || isTrue(answer, "isError") {
			d.boolean("is_error", true)
		}
	}
	l.addEcho(ToolCompleted, "done", id, id, fromEvent, &d)
}

// readTurnItem reads an item of a turn, as the client reports it from 0.147 on. Its id need not be that of the call.
func (l *codexLine) readTurnItem(item fields) {
	id := item.text("id")
	switch item.text("type") {
	case "UserMessage":
		l.addMessage(UserMessage, itemText(item), fromTurn)
	case "AgentMessage":
		l.addMessage(AssistantMessage, itemText(item), fromTurn)
	case "CommandExecution":
		made := call{tool: "exec_command", command: commandOf(item)}
		var d, in data
		d.text("tool", made.tool)
		in.text("command", made.command)
		d.raw("input", in.end())
		l.addEcho(ToolUse, "use", made.command, id, fromTurn, &d)
		code := item.number("exit_code")
		if code == nil && item.text("status") != "completed" {
			code = new(int64(-1)) // it was declined or failed
		}
		l.addDone(id, made, item.text("aggregated_output", "stdout"), code, fromTurn)
	case "FileChange":
		if item.text("status") == "completed" {
			l.addChanges(joinID("item patch", id), item.value("changes"), fromTurn)
		}
	case "WebSearch":
		l.readSearch(item.text("query"), fromTurn)
	}
}

func itemText(item fields) string {
	if text := item.text("text", "message"); text != "" {
		return text
	}
	return allText(item.value("content"))
}

// addChanges adds the changes of files that were applied: {path: {type, content or unified_diff, move_path}}.
func (l *codexLine) addChanges(id string, raw []byte, from origin) {
	members, err := jsontext.Members(nil, raw)
	if err != nil {
		return
	}
	changes := make([]fileChange, 0, len(members))
	for _, member := range members {
		f := object(member.Value)
		path := within(l.folder, member.Key)
		switch kind := f.text("type", "kind"); kind {
		case "add":
			changes = append(changes, newChange(path, changeCreated, wholeFile('+', f.text("content"))))
		case "delete":
			changes = append(changes, newChange(path, changeDeleted, wholeFile('-', f.text("content"))))
		default:
			change := changeModified
			if to := f.text("move_path"); to != "" {
				path, change = within(l.folder, to), changeMoved
			}
			changes = append(changes, newChange(path, change, f.text("unified_diff")))
		}
	}
	l.steps = append(l.steps, changeSteps(changes, id, l.raw.Source, l.raw.At, from)...)
}
