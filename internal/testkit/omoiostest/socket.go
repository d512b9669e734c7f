package omoiostest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// SocketMode is what the WebSocket of events does.
type SocketMode string

// The modes of a socket. The zero value works: a frame for each event that is added, and a ping after 30 s without one.
const (
	SocketSilent   SocketMode = "silent"    // it opens and sends nothing
	SocketDrops    SocketMode = "drops"     // the connection breaks after the first frame
	SocketGarbage  SocketMode = "garbage"   // each frame is no JSON
	SocketTryLater SocketMode = "try-later" // an error and close code 1013
	SocketAbsent   SocketMode = "absent"    // 404, as of a backend without this route
)

// SocketPing is how long a socket that works is silent before it sends a ping.
const SocketPing = 30 * time.Second

func (f *Fake) socketMode() SocketMode {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.o.Socket
}

// serveSocket sends the events that are added from now on. Its credential is the token of the query alone.
func (f *Fake) serveSocket(w http.ResponseWriter, r *http.Request) {
	mode := f.socketMode()
	if mode == SocketAbsent {
		http.NotFound(w, r)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	ctx := conn.CloseRead(r.Context())
	switch {
	case r.URL.Query().Get("token") != Token:
		f.refuseSocket(ctx, conn, "Not authenticated", 4401)
	case mode == SocketTryLater:
		f.refuseSocket(ctx, conn, "Server busy", websocket.StatusTryAgainLater)
	default:
		f.sendEvents(ctx, conn, r.URL.Query().Get("entity_ids"), mode)
	}
}

func (f *Fake) refuseSocket(ctx context.Context, conn *websocket.Conn, why string, code websocket.StatusCode) {
	if sendFrame(ctx, conn, map[string]string{"error": why}) == nil {
		_ = conn.Close(code, "")
	}
}

// sendEvents sends the events of a sandbox until the client or the test ends.
func (f *Fake) sendEvents(ctx context.Context, conn *websocket.Conn, id string, mode SocketMode) {
	f.mu.Lock()
	sent, added := len(f.events), f.added
	f.mu.Unlock()
	for {
		ping := time.NewTimer(SocketPing)
		select {
		case <-ctx.Done():
			ping.Stop()
			return
		case <-f.Ended():
			ping.Stop()
			return
		case <-ping.C:
			if mode != SocketSilent && sendFrame(ctx, conn, map[string]string{"type": "ping"}) != nil {
				return
			}
			continue
		case <-added:
			ping.Stop()
		}
		f.mu.Lock()
		fresh := append([]Event(nil), f.events[sent:]...)
		sent, added = len(f.events), f.added
		f.mu.Unlock()
		for _, e := range fresh {
			if e.Sandbox != id || mode == SocketSilent {
				continue
			}
			if !sendEvent(ctx, conn, e, mode) {
				return
			}
		}
	}
}

// sendEvent sends one event; false = the socket ends.
func sendEvent(ctx context.Context, conn *websocket.Conn, e Event, mode SocketMode) bool {
	if mode == SocketGarbage {
		return conn.Write(ctx, websocket.MessageText, []byte("\x1b[31m<html>")) == nil
	}
	frame := map[string]any{"event_type": "SANDBOX_" + e.Type, "entity_type": "sandbox", "entity_id": e.Sandbox, "payload": e.Data}
	return sendFrame(ctx, conn, frame) == nil && mode != SocketDrops
}

func sendFrame(ctx context.Context, conn *websocket.Conn, frame any) error {
	text, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, text)
}
