package agentlog

import "strings"

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
