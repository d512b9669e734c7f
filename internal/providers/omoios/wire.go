package omoios

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"sbx/internal/agentlog"
	"sbx/internal/httpx"
)

// wireEvents is a page of events, newest first. Rows are decoded one by one, so that an invalid
// one does not affect the others.
type wireEvents struct {
	SandboxID string                      `json:"sandbox_id"`
	Events    httpx.List[json.RawMessage] `json:"events"`
	Total     *int64                      `json:"total_count"`
}

type wireEvent struct {
	ID        string          `json:"id"`
	SandboxID string          `json:"sandbox_id"`
	Type      string          `json:"event_type"`
	Data      json.RawMessage `json:"event_data"`
	Source    string          `json:"source"`
	CreatedAt moment          `json:"created_at"`
}

// wireTrajectory is a sandbox's history without heartbeats and other noise.
type wireTrajectory struct {
	SandboxID  string                      `json:"sandbox_id"`
	Events     httpx.List[json.RawMessage] `json:"events"`
	rows       []json.RawMessage           // of Events
	Heartbeats struct {
		Count int64     `json:"count"`
		Last  heartbeat `json:"last_heartbeat"`
	} `json:"heartbeat_summary" odd:"error"`
	Total int64  `json:"total_events" odd:"error"`
	Next  string `json:"next_cursor" odd:"error"`
	More  *bool  `json:"has_more" odd:"error"`
}

// wireStatus lists the sandboxes that sent a heartbeat within two minutes.
type wireStatus struct {
	Sandboxes httpx.List[wireAlive] `json:"sandboxes"`
}

type wireAlive struct {
	ID       string `json:"sandbox_id" odd:"error"`
	Activity *struct {
		LastBeatAt moment `json:"last_heartbeat_at"`
		Status     string `json:"heartbeat_status"`
		Alive      bool   `json:"is_alive"`
	} `json:"activity"`
}

type wireTask struct {
	ID          string `json:"id" odd:"error"`
	Status      string `json:"status"`
	SandboxID   string `json:"sandbox_id" odd:"error"`
	CreatedAt   moment `json:"created_at"`
	UpdatedAt   moment `json:"updated_at"`
	CompletedAt moment `json:"completed_at"`
}

// moment is a time in Python's format: RFC 3339, or without a zone, which means UTC. Null and a
// missing value are the zero time.
type moment struct {
	time.Time

	naive bool // without a zone: on the server's clock, in whatever zone that is
}

var errMoment = errors.New("not a time")

// UnmarshalJSON decodes a moment.
func (m *moment) UnmarshalJSON(text []byte) error {
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return errMoment
	}
	if word == "" {
		m.Time = time.Time{}
		return nil
	}
	at, ok := agentlog.ParseTime(word)
	_, zoned := time.Parse(time.RFC3339Nano, strings.Replace(word, " ", "T", 1))
	if m.Time, m.naive = at, zoned != nil; !ok {
		return errMoment
	}
	return nil
}

// heartbeat is a heartbeat: its time alone, or the whole event.
type heartbeat struct {
	moment

	sandboxID string // of the event; "" = it names none
}

// UnmarshalJSON decodes a heartbeat.
func (b *heartbeat) UnmarshalJSON(text []byte) error {
	var row struct {
		SandboxID string `json:"sandbox_id"`
		CreatedAt moment `json:"created_at"`
		Timestamp moment `json:"timestamp"`
	}
	if len(text) == 0 || text[0] != '{' {
		return b.moment.UnmarshalJSON(text)
	}
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	b.moment, b.sandboxID = row.CreatedAt, row.SandboxID
	if b.IsZero() {
		b.moment = row.Timestamp
	}
	return nil
}
