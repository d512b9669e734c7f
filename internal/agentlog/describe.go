package agentlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// describe is one line about an event. The tool, path, lines and end of e are set.
func describe(e *Event, data fields) string {
	switch e.Type {
	case AssistantMessage, Message, UserMessage:
		return firstLine(cmp.Or(textOf(data.value("content")), textOf(data.value("text")), textOf(data.value("message"))))
	case SystemMessage:
		return cmp.Or(generalText(object(data.value("metadata"))), generalText(data))
	case ToolUse:
		return join(" ", e.Tool, argument(data))
	case ToolCompleted:
		return join(" -> ", join(" ", e.Tool, argument(data)), outcome(data))
	case UserToolResult:
		return join(" ", e.Tool, "-> "+cmp.Or(outcome(data), "nothing"))
	case FileEdited:
		return change(e)
	case Completed:
		return e.End.String()
	case Heartbeat:
		return join(", ", data.text("status"), counted(data.number("event_count"), "events"))
	}
	return generalText(data)
}

// join puts what is not empty behind each other.
func join(between string, parts ...string) string {
	text := ""
	for _, part := range parts {
		if text != "" && part != "" {
			text += between
		}
		text += part
	}
	return text
}

func counted(n *int64, what string) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10) + " " + what
}

// generalText is the first text member that events are known to have, else any.
func generalText(data fields) string {
	return clip(cmp.Or(data.text("file_path", "tool", "tool_name", "error", "message", "reason", "subtype", "status", "text", "content"), data.anyText()))
}

// argument is the main argument of a tool: what it ran, read or searched for.
func argument(data fields) string {
	raw := data.first("input", "tool_input")
	input := object(raw)
	if input == nil {
		return clip(textOf(raw))
	}
	return clip(cmp.Or(
		input.text("command", "file_path", "notebook_path", "path", "pattern", "query", "url", "description", "prompt", "skill", "name"), input.anyText(),
	))
}

// result is what a tool has answered.
func result(data fields) json.RawMessage {
	return data.first("tool_response", "result", "output", "error")
}

// outcome is the first line of what a tool has answered, with how long it took.
func outcome(data fields) string {
	text := firstLine(textOf(result(data)))
	if cut := data.boolean("result_truncated"); cut != nil && *cut {
		text = join(" ", text, "(the result is cut)")
	}
	if code := data.number("exit_code"); code != nil && *code != 0 {
		text = join(" ", text, "(exit "+strconv.FormatInt(*code, 10)+")")
	}
	if ms := data.number("duration_ms"); ms != nil {
		text = join(" ", text, "("+strconv.FormatFloat(float64(*ms)/1000, 'f', -1, 64)+"s)")
	}
	return text
}

// change is "edited a.go +5 -2".
func change(e *Event) string {
	word := cmp.Or(e.Change, "modified")
	if word == "modified" {
		word = "edited"
	}
	text := join(" ", word, cmp.Or(clip(e.Path), "a file"))
	if e.Added != nil {
		text += fmt.Sprintf(" +%d", *e.Added)
	}
	if e.Removed != nil {
		text += fmt.Sprintf(" -%d", *e.Removed)
	}
	return text
}

// String is "success, 12 turns, exit 0, end_turn".
func (end *End) String() string {
	var parts []string
	switch {
	case end.Success == nil:
	case *end.Success:
		parts = append(parts, "success")
	default:
		parts = append(parts, "failed")
	}
	parts = append(parts, counted(end.Turns, "turns"))
	if end.ExitCode != nil {
		parts = append(parts, "exit "+strconv.FormatInt(*end.ExitCode, 10))
	}
	if end.Cost != nil {
		parts = append(parts, "cost "+strconv.FormatFloat(*end.Cost, 'f', -1, 64))
	}
	return strings.TrimSpace(join(", ", append(parts, end.StopReason)...))
}
