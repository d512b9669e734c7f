package agentlog

import (
	"strings"
	"time"
)

// The types of events that agents report. Others are shown by their name.
const (
	Started          = "agent.started"
	SystemMessage    = "agent.system_message"
	AssistantMessage = "agent.assistant_message"
	Message          = "agent.message"
	UserMessage      = "agent.user_message"
	ToolUse          = "agent.tool_use"
	ToolCompleted    = "agent.tool_completed"
	UserToolResult   = "agent.user_tool_result"
	FileEdited       = "agent.file_edited"
	Completed        = "agent.completed"
	Waiting          = "agent.waiting"
	Heartbeat        = "agent.heartbeat"
)

// Exited is how the program of a sandbox ended, which its provider reports: the end of a run without an agent.
const Exited = "exited"

// Event is one event, its texts clipped.
type Event struct {
	ID      string    // "" = it has none
	Sandbox string    // the source's id of the sandbox; "" = not said
	Type    string    // "agent.tool_use"; "" = not said
	Source  string    // who reported it: "agent", "worker"; "" = not said
	At      time.Time // zero = not known
	Line    int       // its line in the file, from 1; 0 = it is from no file

	Turn *int64 // nil = not said
	What string // one line: the tool and its main argument, the change of a file, the first line of a text

	Tool         string // of an event about a tool
	Path, Change string // of a file_edited: the file, and created, modified or another word
	Added        *int64 // lines; nil = not known
	Removed      *int64 // lines; nil = not known
	Failed       bool   // it reports an error or a failed end
	End          *End   // of a completed

	DiffBytes   int    // length of its diff; 0 = it has none
	DiffPreview bool   // the diff is the beginning of the change alone
	DiffLeftOut bool   // the diffs before it have MaxDiffs
	Diff        string // with Options.Diffs; else ""

	keys *eventKeys // with Options.Keys
}

// End is what a completed event says.
type End struct {
	Success    *bool
	Turns      *int64
	ExitCode   *int64
	StopReason string
	Cost       *float64 // in the currency of the agent's account, which is not said
}

// IsHeartbeat says that an event only shows that the worker lives.
func (e *Event) IsHeartbeat() bool { return strings.HasSuffix(e.Type, ".heartbeat") }

// ParseTime reads a time as OmoiOS writes it: RFC 3339, or without a zone, which means UTC. False
// for any other text and for a year beyond four digits.
func ParseTime(text string) (time.Time, bool) {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1 && at.Year() <= 9999 {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}
