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
		return &eventKeys{work: h.Sum64()}
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
	if diff := data.text("full_diff", "diff_preview"); diff != "" {
		d := fnv.New64a()
		_, _ = io.WriteString(d, diff)
		keys.diff = d.Sum64()
	}
	return keys
}

// IsWork says that an event is a step of the work: no heartbeat, and no wait for the next message.
func (e *Event) IsWork() bool { return !e.IsHeartbeat() && e.Type != Waiting }

// IsAct says that an event is an act: the use of a tool, a change of a file, or the end.
func (e *Event) IsAct() bool {
	return e.Type == ToolUse || e.Type == FileEdited || e.Type == Completed || e.Type == Exited
}
