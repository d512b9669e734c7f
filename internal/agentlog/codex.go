package agentlog

import (
	"strings"
	"time"
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
