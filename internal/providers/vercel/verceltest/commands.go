package verceltest

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sbx/internal/providers/wiretest"
)

// command is one command of a session, with all that it has written.
type command struct {
	id, name string
	args     []string
	started  time.Time
	run      *wiretest.Running
	ran      time.Duration // once it has ended
	failed   int           // the exit code of what could not be run

	mu     sync.Mutex
	chunks []map[string]any
	more   chan struct{} // closed and replaced at every chunk
}

func (c *command) done() bool {
	if c.run == nil {
		return true
	}
	select {
	case <-c.run.Done():
		return true
	default:
		return false
	}
}

// ended is closed when the command has ended.
func (c *command) ended() <-chan struct{} {
	if c.run == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return c.run.Done()
}

// code is the exit code as the service tells it: 128+n for a death by signal.
func (c *command) code() any {
	if !c.done() {
		return nil
	}
	if c.run == nil {
		return c.failed
	}
	code, signal := c.run.Wait()
	if signal != 0 {
		return 128 + int(signal)
	}
	return code
}

func (c *command) write(stream string, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chunks = append(c.chunks, map[string]any{"stream": stream, "data": string(text)})
	close(c.more)
	c.more = make(chan struct{})
}

// from gives the chunks from n on, and what tells of more.
func (c *command) from(n int) ([]map[string]any, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chunks[n:], c.more
}

func (c *command) json(sessionID string) map[string]any {
	fields := map[string]any{
		"id": c.id, "name": c.name, "args": c.args, "cwd": "/vercel/sandbox", "sessionId": sessionID, "exitCode": c.code(), "startedAt": c.started.UnixMilli(),
	}
	if c.done() {
		c.mu.Lock()
		fields["durationMs"] = c.ran.Milliseconds()
		c.mu.Unlock()
	}
	return fields
}

type writer struct {
	c      *command
	stream string
}

// Write keeps a chunk.
func (w writer) Write(b []byte) (int, error) {
	w.c.write(w.stream, b)
	return len(b), nil
}

// live finds a running session and refuses as the API does for any other.
func (f *Fake) live(w http.ResponseWriter, id string) *vm {
	_, v := f.session(id)
	switch {
	case v == nil:
		refuse(w, http.StatusNotFound, "not_found", "no session %s", id)
		return nil
	case v.status == "stopping":
		refuse(w, http.StatusUnprocessableEntity, "sandbox_stopping", "the sandbox is stopping")
		return nil
	case v.status != "running":
		refuse(w, http.StatusGone, "sandbox_stopped", "the sandbox is %s", v.status)
		return nil
	}
	return v
}

// run starts a command and streams it: the command, its output, the command
// with its exit code.
func (f *Fake) run(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	v := f.live(w, r.PathValue("id"))
	if v == nil {
		f.mu.Unlock()
		return
	}
	c := f.spawn(r, v)
	f.mu.Unlock()
	s := begin(w)
	s.send(map[string]any{"command": c.json(v.id)})
	if !f.stream(s, r, c, v) {
		return
	}
	s.send(map[string]any{"command": c.json(v.id)})
}

// spawn starts a process with its streams kept. The lock is held.
func (f *Fake) spawn(r *http.Request, v *vm) *command {
	var body struct {
		Command string
		Args    []string
		Cwd     string
		Env     map[string]string
		Timeout int64
	}
	wiretest.Decode(r, &body)
	b, _ := f.session(v.id)
	c := &command{id: "cmd_" + strconv.Itoa(len(v.commands)+1), name: body.Command, args: body.Args, started: f.o.Now(), more: make(chan struct{})}
	if c.args == nil {
		c.args = []string{}
	}
	v.commands = append(v.commands, c)
	p := wiretest.Process{Args: append([]string{body.Command}, body.Args...), Dir: body.Cwd, Stdout: writer{c, "stdout"}, Stderr: writer{c, "stderr"}}
	for _, env := range []map[string]string{b.env, body.Env} {
		for k, value := range env {
			p.Env = append(p.Env, k+"="+value)
		}
	}
	f.idleCounters(f.machine(v), p.Args)
	run, err := f.machine(v).Start(p)
	if err != nil {
		c.failed = 127
		if errors.Is(err, os.ErrPermission) {
			c.failed = 126
		}
		c.write("stderr", []byte("sh: "+body.Command+": "+err.Error()+": not found\n"))
		return c
	}
	c.run = run
	go c.watch(time.Duration(body.Timeout) * time.Millisecond)
	return c
}

// watch kills a command whose time is over, as the service does, and notes how
// long it ran.
func (c *command) watch(limit time.Duration) {
	if limit > 0 {
		defer time.AfterFunc(limit, func() { _ = c.run.Signal(syscall.SIGKILL) }).Stop()
	}
	began := time.Now()
	<-c.run.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran = time.Since(began)
}

// ndjson writes lines.
type ndjson struct{ w http.ResponseWriter }

func begin(w http.ResponseWriter) ndjson {
	w.Header().Set("Content-Type", "application/x-ndjson")
	return ndjson{w}
}

func (n ndjson) send(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	_, _ = n.w.Write(append(text, '\n'))
	_ = http.NewResponseController(n.w).Flush() // a client that has left hears nothing
}

// stream sends a command's output until it has ended; false when the client left
// or the VM died under it.
func (f *Fake) stream(s ndjson, r *http.Request, c *command, v *vm) bool {
	for sent := 0; ; {
		over := c.done() // before the look, so that the last chunks come with it
		chunks, more := c.from(sent)
		for _, chunk := range chunks {
			s.send(chunk)
		}
		sent += len(chunks)
		if over {
			f.mu.Lock()
			aborted := v.over()
			f.mu.Unlock()
			if aborted {
				s.send(map[string]any{"stream": "error", "data": map[string]string{"code": "sandbox_stopped", "message": "the sandbox stopped"}})
			}
			return !aborted
		}
		select {
		case <-more:
		case <-c.ended():
		case <-r.Context().Done():
			return false
		case <-f.Ended():
			return false
		}
	}
}

func (f *Fake) logs(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	c, v := f.command(w, r)
	f.mu.Unlock()
	if c != nil {
		f.stream(begin(w), r, c, v)
	}
}

// command finds that of a request; nil, and a refusal sent, without one. The lock
// is held.
func (f *Fake) command(w http.ResponseWriter, r *http.Request) (*command, *vm) {
	v := f.live(w, r.PathValue("id"))
	if v == nil {
		return nil, nil
	}
	for _, c := range v.commands {
		if c.id == r.PathValue("cmd") {
			return c, v
		}
	}
	refuse(w, http.StatusNotFound, "not_found", "no command")
	return nil, nil
}

func (f *Fake) getCommand(w http.ResponseWriter, r *http.Request) {
	if c, v := f.command(w, r); c != nil {
		wiretest.JSON(w, http.StatusOK, map[string]any{"command": c.json(v.id)})
	}
}

func (f *Fake) listCommands(w http.ResponseWriter, r *http.Request) {
	v := f.live(w, r.PathValue("id"))
	if v == nil {
		return
	}
	rows := []any{}
	for i := range v.commands {
		rows = append(rows, v.commands[len(v.commands)-1-i].json(v.id))
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"commands": rows})
}

func (f *Fake) kill(w http.ResponseWriter, r *http.Request) {
	c, v := f.command(w, r)
	if c == nil {
		return
	}
	var body struct{ Signal int }
	wiretest.Decode(r, &body)
	if c.run != nil {
		_ = c.run.Signal(syscall.Signal(body.Signal)) // one that has ended is no failure of the call
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"command": c.json(v.id)})
}

// write unpacks a tar into a session's folder.
func (f *Fake) write(w http.ResponseWriter, r *http.Request) {
	v := f.live(w, r.PathValue("id"))
	if v == nil {
		return
	}
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", "%v", err)
		return
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err != nil {
			break
		}
		text, _ := io.ReadAll(archive)
		if err := os.WriteFile(filepath.Join(f.machine(v).Home, filepath.Base(header.Name)), text, 0o600); err != nil {
			refuse(w, http.StatusInternalServerError, "internal", "%v", err)
			return
		}
	}
	wiretest.JSON(w, http.StatusOK, struct{}{})
}
