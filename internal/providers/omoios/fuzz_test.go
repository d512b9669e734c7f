package omoios

import (
	"encoding/json"
	"testing"
)

func FuzzReadEvent(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","event_type":"agent.tool_use","event_data":{"tool":"Bash"},"source":"agent","created_at":"2026-11-20T10:00:00Z"}`,
		`{"id":"a","event_type":"x","event_data":null,"created_at":"2026-11-20 10:00:00"}`, `{"id":1}`, `null`, `[]`,
		`{"id":"a","event_type":"x","event_data":{"error":"` + "\u2028" + `"},"created_at":"9999-12-31T23:59:59+23:59"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		w, ok := readEvent(row, "")
		if !ok {
			return
		}
		if w.ID == "" || w.Type == "" || w.CreatedAt.IsZero() {
			t.Fatalf("half an event from %q", row)
		}
	})
}

func FuzzTrajectory(f *testing.F) {
	f.Add([]byte(`{"events":[],"heartbeat_summary":{"count":1,"last_heartbeat":{"created_at":"2026-11-20T10:00:00"}}}`))
	f.Add([]byte(`{"heartbeat_summary":{"last_heartbeat":"2026-11-20T10:00:00Z"},"next_cursor":null}`))
	f.Add([]byte(`{"heartbeat_summary":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var w wireTrajectory
		if json.Unmarshal(body, &w) != nil {
			return
		}
		last, ok := lastWork(w)
		if ok && last.Type != "" && !isWork(last.Type) {
			t.Fatalf("%s is no work", last.Type)
		}
	})
}
