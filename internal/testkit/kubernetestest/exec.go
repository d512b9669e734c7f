package kubernetestest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"sbx/internal/testkit/wiretest"
)

const protocol = "v5.channel.k8s.io"

// serveExec runs a command with its streams on a WebSocket of version 5. The lock is held, and released while the
// command runs.
func (f *Fake) serveExec(w http.ResponseWriter, r *http.Request, p *thing) {
	q := r.URL.Query()
	switch {
	case slices.Contains(f.o.Refuse, "create pods/exec"): // since 1.35 a WebSocket needs it beside get; that check gives no reason
		refuse(w, http.StatusForbidden, "Forbidden", "pods %q is forbidden: ", p.name)
		return
	case len(q["command"]) == 0:
		refuse(w, http.StatusBadRequest, "BadRequest", "you must specify at least 1 command for the container")
		return
	case q.Get("container") != "main" && q.Get("container") != "":
		refuse(w, http.StatusBadRequest, "BadRequest", "container %s is not valid for pod %s", q.Get("container"), p.name)
		return
	case p.phase != "Running" || p.done || p.machine == nil && p.main != nil:
		refuse(w, http.StatusInternalServerError, "InternalError", "unable to upgrade connection: container not found (\"main\")")
		return
	}
	if p.machine == nil {
		p.machine = wiretest.NewMachine(f.t, f.o.Shell)
	}
	machine := p.machine
	f.mu.Unlock()
	defer f.mu.Lock()
	if _, can := w.(http.Hijacker); !can { // a fault takes the answer: the command runs, and nobody sees it
		f.runExec(p, machine, wiretest.Process{Args: q["command"], Stdout: io.Discard, Stderr: io.Discard})
		_, _ = w.Write([]byte("some bytes that are no WebSocket"))
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol}})
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(32 << 20)
	if conn.Subprotocol() != protocol {
		f.t.Errorf("exec without the protocol %s", protocol)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	run := wiretest.Process{Args: q["command"], Stdout: channel{ctx, conn, 1}, Stderr: channel{ctx, conn, 2}}
	stdin, input := io.Pipe()
	if q.Get("stdin") == "true" {
		run.Stdin = stdin
	}
	if q.Get("tty") == "true" {
		run.Stderr = run.Stdout
	}
	go readInput(ctx, conn, input)
	_ = run.Stdout.(channel).send(nil) //nolint:forcetypeassert,errcheck // an empty message opens each stream
	_, _ = channel{ctx, conn, 3}.Write(encode(f.runExec(p, machine, run)))
	_ = conn.Close(websocket.StatusNormalClosure, "")
}

// runExec runs a command to its end and gives its Status.
func (f *Fake) runExec(p *thing, machine *wiretest.Machine, run wiretest.Process) map[string]any {
	started, err := machine.Start(run)
	failed := func(why string) map[string]any {
		return map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "reason": "InternalError", "code": 500, "message": "Internal error occurred: error executing command in container: failed to exec in container: OCI runtime exec failed: exec failed: unable to start container process: " + why}
	}
	switch {
	case wiretest.Missing(err):
		return failed(fmt.Sprintf("exec: %q: executable file not found in $PATH: unknown", run.Args[0]))
	case errors.Is(err, fs.ErrPermission):
		return failed(fmt.Sprintf("exec: %q: permission denied: unknown", run.Args[0]))
	case err != nil:
		return failed("container is not running")
	}
	f.mu.Lock()
	f.execs[p] = append(f.execs[p], started)
	f.mu.Unlock()
	code, signal := started.Wait()
	if signal != 0 {
		code = 128 + int(signal)
	}
	if code == 0 {
		return map[string]any{"metadata": map[string]any{}, "status": "Success"}
	}
	return map[string]any{
		"metadata": map[string]any{}, "status": "Failure", "reason": "NonZeroExitCode", "message": fmt.Sprintf("command terminated with non-zero exit code: exit status %d", code),
		"details": map[string]any{"causes": []any{map[string]any{"reason": "ExitCode", "message": strconv.Itoa(code)}}},
	}
}

// readInput passes stdin on until its channel is closed. It reads on to answer pings.
func readInput(ctx context.Context, conn *websocket.Conn, input *io.PipeWriter) {
	defer func() { _ = input.Close() }()
	for {
		_, message, err := conn.Read(ctx)
		switch {
		case err != nil:
			return
		case len(message) >= 2 && message[0] == 255 && message[1] == 0:
			_ = input.Close()
		case len(message) > 0 && message[0] == 0:
			_, _ = input.Write(message[1:]) // the command may have ended
		}
	}
}

// channel writes messages of one channel.
type channel struct {
	ctx    context.Context //nolint:containedctx // the life of the connection
	conn   *websocket.Conn
	number byte
}

func (c channel) send(p []byte) error {
	return c.conn.Write(c.ctx, websocket.MessageBinary, append([]byte{c.number}, p...))
}

// Write implements io.Writer. A client that has left does not end the command.
func (c channel) Write(p []byte) (int, error) {
	_ = c.send(p)
	return len(p), nil
}

// serveLog sends lines with their times, with follow until the container ends.
func (f *Fake) serveLog(w http.ResponseWriter, r *http.Request, p *thing) {
	q := r.URL.Query()
	var since time.Time
	if text := q.Get("sinceTime"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			refuse(w, http.StatusBadRequest, "BadRequest", "sinceTime: %v", err)
			return
		}
	}
	if p.phase == "Pending" {
		refuse(w, http.StatusBadRequest, "BadRequest", "container \"main\" in pod %q is waiting to start: ContainerCreating", p.name)
		return
	}
	if f.o.LostNode {
		refuse(w, http.StatusInternalServerError, "InternalError", "Get \"https://10.0.0.1:10250/containerLogs\": dial tcp 10.0.0.1:10250: connect: no route to host")
		return
	}
	log := p.log
	if q.Get("previous") == "true" {
		if p.again.Restarts == 0 {
			refuse(w, http.StatusBadRequest, "BadRequest", "previous terminated container %q in pod %q not found", q.Get("container"), p.name)
			return
		}
		log = []entry{{f.o.Now().Add(-p.again.Ago), "the last words of an earlier run"}}
	} else if q.Get("container") == "proxy" {
		log = []entry{{p.started, "the words of the sidecar"}}
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	defer f.WakeWhenOver(r, f.change)()
	at := 0
	if tail, err := strconv.Atoi(q.Get("tailLines")); err == nil {
		at = max(0, len(log)-tail)
	}
	for {
		text := linesOf(log[at:], since, q.Get("timestamps") == "true")
		at = len(log)
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		if q.Get("follow") != "true" || p.phase != "Running" || p.done || f.Over(r) {
			return
		}
		f.change.Wait()
		log = p.log
	}
}

// linesOf is the text of some lines of a log.
func linesOf(log []entry, since time.Time, stamped bool) string {
	var b strings.Builder
	for _, e := range log {
		if e.at.Before(since) {
			continue
		}
		if stamped {
			b.WriteString(e.at.UTC().Format(time.RFC3339Nano) + " ")
		}
		b.WriteString(e.text + "\n")
	}
	return b.String()
}
