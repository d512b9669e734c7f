// Package agentlog is the language of agent events: what a coding agent reports of its work in a
// sandbox, one event for each step. It decodes events, describes each in one line, counts them and
// compares two sessions.
//
// A session is JSONL: one object {id, sandbox_id, event_type, event_data{}, source, created_at} a
// line. Each value may be missing, null or of another type; what is there is shown. Nothing here
// opens a file, calls an API or prints.
package agentlog
