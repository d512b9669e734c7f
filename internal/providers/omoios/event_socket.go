package omoios

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"sbx/internal/httpx"
	"sbx/internal/jsontext"
	"sbx/internal/poll"
	"sbx/internal/providers"
)

var _ providers.AgentEventWaker = (*Client)(nil)

const (
	// socketSilence is how long a working socket may send nothing: two and a half of its pings, which come
	// every 30 s (OmoiOS API).
	socketSilence = 75 * time.Second
	// The pauses between two attempts to open the socket grow from the first to the longest.
	firstSocketPause, longestSocketPause = 2 * time.Second, time.Minute
	// maxFrame is the longest frame, in bytes. It is the longest answer, too: a frame has the payload of its event, such
	// as a whole diff, and the request for new events that follows it could read no longer one.
	maxFrame = httpx.DefaultMaxBody

	closedNoToken = websocket.StatusCode(4401)
)

// errSocketFinal marks a failure that another attempt would not change.
var errSocketFinal = errors.New("it is not tried again")

// wireFrame is a message of the socket: an event, a ping, or an error before the socket is closed.
type wireFrame struct {
	Type       string `json:"type"`
	EventType  string `json:"event_type"`
	EntityType string `json:"entity_type"`
	EntityID   string `json:"entity_id"`
	Error      string `json:"error"`
}

// WakeOnEvents is providers.AgentEventWaker's: it calls wake at each event of a sandbox that OmoiOS's WebSocket tells. A
// socket that is lost is opened again after a pause that grows; one that is refused for good is not. The first failure
// is traced.
func (c *Client) WakeOnEvents(ctx context.Context, id string, wake func()) {
	if c.token == "" {
		c.traceSocket(id, errors.New("there is no token"))
		return
	}
	pause := poll.NewBackoff(firstSocketPause, longestSocketPause)
	for attempt := 1; ; attempt++ {
		worked, err := c.readSocket(ctx, id, wake)
		if ctx.Err() != nil {
			return
		}
		if attempt == 1 {
			c.traceSocket(id, err)
		}
		if worked {
			pause.Reset()
		}
		if errors.Is(err, errSocketFinal) || pause.Sleep(ctx) != nil {
			return
		}
	}
}

func (c *Client) traceSocket(id string, err error) {
	c.API.Trace("! WebSocket of the events of %s: %v; new events are looked for by polling", id, err)
}

// readSocket opens the socket and calls wake for each frame about the sandbox until the socket fails. Worked = a frame
// or a ping came.
func (c *Client) readSocket(ctx context.Context, id string, wake func()) (worked bool, err error) {
	conn, err := c.openSocket(ctx, id)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxFrame)
	for {
		frame, err := readFrame(ctx, conn)
		if err != nil {
			return worked, err
		}
		worked = worked || frame.Error == "" // a frame with an error comes before a close, whose code says whether to try again
		if frame.EntityType == "sandbox" && frame.EntityID == id {
			wake()
		}
	}
}

// openSocket makes the handshake. The token is in the address. So a redirect, which would take it to another host, is not
// followed, and no error shows the address.
func (c *Client) openSocket(ctx context.Context, id string) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, httpx.DefaultTimeout)
	defer cancel()
	client := c.API.HTTP()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	query := url.Values{"token": {c.token}, "entity_types": {"sandbox"}, "entity_ids": {id}}
	conn, res, err := websocket.Dial(ctx, c.API.Base()+"/api/v1/events/ws/events?"+query.Encode(), &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // the connection owns the body
	switch {
	case err == nil:
		return conn, nil
	case res == nil:
		if withAddress, ok := errors.AsType[*url.Error](err); ok {
			err = withAddress.Err
		}
		return nil, fmt.Errorf("it cannot be opened: %w", err)
	case res.StatusCode >= 300 && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		return nil, fmt.Errorf("the answer is HTTP %d; %w", res.StatusCode, errSocketFinal)
	}
	return nil, fmt.Errorf("the answer is HTTP %d and no WebSocket", res.StatusCode)
}

// readFrame reads one message, for at most socketSilence.
func readFrame(ctx context.Context, conn *websocket.Conn) (wireFrame, error) {
	limited, cancel := context.WithTimeout(ctx, socketSilence)
	defer cancel()
	_, text, err := conn.Read(limited)
	var frame wireFrame
	switch code := websocket.CloseStatus(err); {
	case err == nil:
		if jsontext.Unmarshal(text, &frame) != nil {
			return frame, errors.New("a frame is not JSON")
		}
		return frame, nil
	case code == closedNoToken:
		return frame, fmt.Errorf("the token is not accepted (close code 4401); %w", errSocketFinal)
	case code != -1:
		return frame, fmt.Errorf("it was closed with code %d", code)
	case limited.Err() != nil:
		return frame, fmt.Errorf("nothing came for %s", socketSilence)
	}
	return frame, fmt.Errorf("it was lost: %w", err)
}
