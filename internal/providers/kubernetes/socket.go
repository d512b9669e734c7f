package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
)

// protocol is version 5 of the streams of a command, of API servers since 1.30. Earlier ones cannot end stdin.
const protocol = "v5.channel.k8s.io"

// The channels: the first byte of each message.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelEnd    = 3 // a Status
	channelResize = 4
	channelClose  = 255 // of the channel that follows
)

const (
	maxMessage = 16 << 20 // bytes; the API sends 32 KiB
	pingEvery  = 10 * time.Second
	// endWait is how long output may follow the end of a command.
	endWait = 5 * time.Second
)

// stream starts the command and copies its streams until the API ends them.
func (r *execution) stream(ctx context.Context) error {
	args, prelude := r.argv()
	conn, err := r.c.openSocket(ctx, r.op, r.c.podPath(r.at.pod, "exec"), r.query(args, prelude))
	if err != nil {
		r.started = fault.KindOf(err) == fault.KindUnavailable && !httpx.NotSent(err) && !errors.Is(err, errRefused)
		return err
	}
	r.started = true
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxMessage)
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go keepAlive(inner, conn, cancel)
	if r.cmd.Stdin != nil || prelude != "" {
		go r.sendInput(inner, conn, prelude)
	}
	if r.cmd.TTY != nil {
		go r.sendSizes(inner, conn)
	}
	for {
		_, message, err := conn.Read(inner)
		switch cause := context.Cause(inner); {
		case err != nil && r.end != nil:
			return nil
		case err != nil && cause != nil && ctx.Err() == nil:
			return cause
		case err != nil:
			return fault.New(fault.KindUnavailable, "%w", err)
		case len(message) == 0:
			continue
		}
		if r.take(message[0], message[1:]) {
			time.AfterFunc(endWait, func() { cancel(nil) })
		}
		if r.failed != nil {
			return r.failed
		}
	}
}

// take takes one message; true for the end of the command.
func (r *execution) take(channel byte, text []byte) bool {
	to := r.cmd.Stdout
	switch channel {
	case channelEnd:
		var end wireStatus
		if json.Unmarshal(text, &end) == nil {
			r.end = &end
		}
		return r.end != nil
	case channelStderr:
		r.tail.Add(text)
		to = r.cmd.Stderr
	case channelStdout:
	default:
		return false
	}
	if to != nil && len(text) > 0 {
		_, r.failed = to.Write(text)
	}
	return false
}

func (r *execution) query(args []string, prelude string) url.Values {
	q := url.Values{"command": args, "container": {r.at.container}, "stdout": {"true"}}
	switch {
	case r.cmd.TTY != nil:
		q.Set("tty", "true")
	default:
		q.Set("stderr", "true")
	}
	if r.cmd.Stdin != nil || prelude != "" {
		q.Set("stdin", "true")
	}
	return q
}

// sendInput sends stdin and its end. The command may end before it.
func (r *execution) sendInput(ctx context.Context, conn *websocket.Conn, prelude string) {
	to := channelWriter{ctx, conn, channelStdin}
	if prelude != "" {
		if _, err := io.WriteString(to, prelude); err != nil {
			return
		}
	}
	if r.cmd.Stdin != nil {
		if _, err := io.Copy(to, r.cmd.Stdin); err != nil && ctx.Err() != nil {
			return
		}
	}
	_ = conn.Write(ctx, websocket.MessageBinary, []byte{channelClose, channelStdin})
}

func (r *execution) sendSizes(ctx context.Context, conn *websocket.Conn) {
	send := func(size providers.Size) {
		text, err := json.Marshal(map[string]uint16{"Width": size.Columns, "Height": size.Rows})
		if err == nil {
			_ = conn.Write(ctx, websocket.MessageBinary, append([]byte{channelResize}, text...)) // see EachSize
		}
	}
	send(r.cmd.TTY.Size)
	wirekit.EachSize(ctx, r.cmd.TTY, send)
}

// channelWriter sends what is written as messages of one channel.
type channelWriter struct {
	ctx     context.Context //nolint:containedctx // the life of the stream
	conn    *websocket.Conn
	channel byte
}

// Write implements io.Writer.
func (w channelWriter) Write(p []byte) (int, error) {
	if err := w.conn.Write(w.ctx, websocket.MessageBinary, append([]byte{w.channel}, p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// keepAlive gives a connection up that answers no ping: a command may be silent for any time.
func keepAlive(ctx context.Context, conn *websocket.Conn, give func(error)) {
	for poll.Sleep(ctx, pingEvery) == nil {
		limited, cancel := context.WithTimeout(ctx, pingEvery)
		err := conn.Ping(limited)
		cancel()
		if err != nil && ctx.Err() == nil {
			give(fault.New(fault.KindUnavailable, "the connection is dead: no answer to a ping within %s", pingEvery))
			return
		}
	}
}

// errRefused is inside the error of a handshake that the API has answered with a refusal.
var errRefused = errors.New("it was not started")

// openSocket makes the handshake of a WebSocket. It is not repeated: the command may have been started.
func (c *Client) openSocket(ctx context.Context, op, path string, query url.Values) (*websocket.Conn, error) {
	handshake, cancel := context.WithTimeout(ctx, httpx.DefaultTimeout)
	defer cancel()
	conn, res, err := websocket.Dial(handshake, c.API.Base()+path+"?"+query.Encode(), &websocket.DialOptions{HTTPClient: c.API.HTTP(), Subprotocols: []string{protocol}}) //nolint:bodyclose // the connection owns the body
	switch {
	case err == nil && conn.Subprotocol() != protocol:
		_ = conn.CloseNow()
		return nil, c.Fault(fault.KindUnsupported, op, "the API server does not speak %s", protocol).WithHint("it needs Kubernetes 1.30 or newer")
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, fault.New(fault.KindOf(ctx.Err()), "%w", context.Cause(ctx))
	case res == nil:
		return nil, socketFailure(err)
	}
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // the status says enough
	reason, message := explain(res.StatusCode, text)
	if res.StatusCode < http.StatusBadRequest { // it was understood, and what became of the command is not known
		return nil, fault.New(fault.KindUnavailable, "the answer is HTTP %d and no WebSocket", res.StatusCode)
	}
	refused := fault.New(httpx.KindOf(res.StatusCode), "%w: HTTP %d %s", errRefused, res.StatusCode, message)
	switch {
	case c.isPassing(res.StatusCode, message):
		refused.Kind = fault.KindUnavailable
	case byRule(res.StatusCode, reason, message):
		refused.Kind = fault.KindRefused
		refused.Hint = c.refusalHint(message)
	case refused.Kind == fault.KindAuth:
		if strings.HasSuffix(message, "is forbidden: ") { // the check of an upgrade names no right (kube-apiserver 1.36)
			refused.Err = fmt.Errorf(
				"%w: HTTP %d %scannot create resource \"pods/exec\" in API group \"\" in the namespace %q", errRefused, res.StatusCode, message, c.at.namespace,
			)
		}
		refused.Hint = rightsHint + ": `sbx doctor --provider " + c.Profile + "` shows what is missing"
	}
	if res.StatusCode == http.StatusInternalServerError { // the API has answered: the node does not
		_ = refused.Inside()
	}
	refused.RetryAfter = httpx.RetryAfter(c.Now(), res)
	return nil, refused
}

// socketFailure is the error of a handshake without an answer. Its text has no address: that has the arguments of
// the command.
func socketFailure(err error) error {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known
	}
	if at, ok := errors.AsType[*url.Error](err); ok {
		err = at.Err
	}
	return fault.New(fault.KindUnavailable, "no WebSocket: %w", err)
}
