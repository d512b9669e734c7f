package agentlog

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"strings"

	"sbx/internal/jsontext"
)

// eventKeys are what two events are compared by.
type eventKeys struct {
	work uint64 // all of an event but its ids, times, turn and costs
	diff uint64 // of a file_edited: the text of its diff

	// For two sessions of different forms, whose agents have other tools and write other texts around the same work.
	did     uint64 // the command of a shell, the path and the changed lines of a file, else the type and the line about it
	changed uint64 // of a file_edited: the lines that it adds and removes
}

// volatile are the members of an event that differ between two runs that do the same work.
func volatile(key string) bool {
	switch key {
	case "turn", "turns", "tool_use_id", "timestamp", "task_id", "agent_id", "sandbox_id", "session_id", "event_count", "duration_ms", "usage", "cost":
		return true
	}
	return strings.HasSuffix(key, "_at")
}

func keysOf(e *Event, data fields, raw json.RawMessage) *eventKeys {
	h := fnv.New64a()
	_, _ = io.WriteString(h, e.Type+"\x00")
	if data == nil {
		_, _ = h.Write(raw)
		if e.Type == Exited {
			_, _ = io.WriteString(h, e.What)
		}
		sum := h.Sum64()
		return &eventKeys{work: sum, did: sum}
	}
	stable := make(map[string]any, len(data))
	for _, member := range data {
		var v any
		if !volatile(member.Key) && jsontext.Unmarshal(member.Value, &v) == nil {
			stable[member.Key] = v
		}
	}
	if text, err := json.Marshal(stable); err == nil { // with its keys in order
		_, _ = h.Write(text)
	}
	keys := &eventKeys{work: h.Sum64()}
	did := []string{e.Type, e.What}
	if diff := data.text("full_diff", "diff_preview"); diff != "" {
		changed := changedLines(diff)
		keys.diff, keys.changed = sumOf(diff), sumOf(changed)
		did = []string{e.Type, e.Path, changed}
	}
	if command := object(data.first("input", "tool_input")).text("command"); e.Type == ToolUse && isShell(e.Tool) && command != "" {
		did = []string{e.Type, command}
	}
	keys.did = sumOf(did...)
	return keys
}

func sumOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		_, _ = io.WriteString(h, text+"\x00")
	}
	return h.Sum64()
}

// changedLines are the lines that a unified diff adds and removes.
func changedLines(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if (line[0] == '+' || line[0] == '-') && !strings.HasPrefix(line, "+++ ") && !strings.HasPrefix(line, "--- ") {
			b.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return b.String()
}

// IsWork says that an event is a step of the work: no heartbeat, and no wait for the next message.
func (e *Event) IsWork() bool { return !e.IsHeartbeat() && e.Type != Waiting }

// IsAct says that an event is an act: the use of a tool, a change of a file, or the end.
func (e *Event) IsAct() bool {
	return e.Type == ToolUse || e.Type == FileEdited || e.Type == Completed || e.Type == Exited
}
