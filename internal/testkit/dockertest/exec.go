package dockertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// exec is a command beside the main program.
type exec struct {
	id      string
	box     *box
	p       wiretest.Process
	stdin   bool
	tty     bool
	running bool
	code    *int
	pid     int
	run     *wiretest.Running
}

func (f *Fake) serveNewExec(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		AttachStdin, Tty bool
		Cmd, Env         []string
		WorkingDir       string
	}
	wiretest.Decode(r, &body)
	switch {
	case f.o.Podman && b.state != "running":
		refuse(w, http.StatusInternalServerError, "can only create exec sessions on running containers: container state improper")
		return
	case b.state == "paused":
		refuse(w, http.StatusConflict, "Container %s is paused, unpause the container before exec", b.id)
		return
	case b.state != "running":
		refuse(w, http.StatusConflict, "Container %s is not running", b.id)
		return
	case len(body.Cmd) == 0:
		refuse(w, http.StatusBadRequest, "No exec command specified")
		return
	}
	e := &exec{
		id: fmt.Sprintf("%064x", len(f.execs)+1), box: b, stdin: body.AttachStdin, tty: body.Tty,
		p: wiretest.Process{Args: body.Cmd, Env: append(append([]string(nil), b.env...), body.Env...), Dir: body.WorkingDir},
	}
	f.execs[e.id] = e
	b.execs = append(b.execs, e.id)
	f.note(b, "exec_create: "+strings.Join(body.Cmd, " "), map[string]string{"execID": e.id})
	wiretest.JSON(w, http.StatusCreated, map[string]string{"Id": e.id})
}

func (f *Fake) serveExec(w http.ResponseWriter, r *http.Request) {
	e := f.execs[r.PathValue("id")]
	if e == nil {
		refuse(w, http.StatusNotFound, "No such exec instance: %s", r.PathValue("id"))
		return
	}
	answer := map[string]any{
		"ID": e.id, "Running": e.running, "Pid": e.pid, "ContainerID": e.box.id, "OpenStdin": e.stdin, "OpenStdout": true, "OpenStderr": true, "CanRemove": false, "DetachKeys": "",
		"ProcessConfig": map[string]any{"tty": e.tty, "entrypoint": e.p.Args[0], "arguments": e.p.Args[1:], "privileged": false},
	}
	if e.code != nil { // engines say null, which the description does not have
		answer["ExitCode"] = *e.code
	}
	wiretest.JSON(w, http.StatusOK, answer)
}

func (f *Fake) serveResize(w http.ResponseWriter, r *http.Request) {
	e := f.execs[r.PathValue("id")]
	if e == nil || !e.running {
		refuse(w, http.StatusNotFound, "No such exec instance: %s", r.PathValue("id"))
		return
	}
	w.WriteHeader(http.StatusOK)
}

// serveExecStart starts a command and connects its streams: after an upgrade in both directions, else one way.
// The lock is held, and released while the command runs.
func (f *Fake) serveExecStart(w http.ResponseWriter, r *http.Request) {
	e := f.execs[r.PathValue("id")]
	switch {
	case e == nil:
		refuse(w, http.StatusNotFound, "No such exec instance: %s", r.PathValue("id"))
		return
	case e.code != nil || e.running:
		refuse(w, http.StatusConflict, "Exec %s has already run", e.id)
		return
	case e.box.state != "running" || e.box.machine == nil && e.box.main != nil:
		refuse(w, http.StatusConflict, "Container %s is not running", e.box.id)
		return
	}
	if e.box.machine == nil {
		e.box.machine = wiretest.NewMachine(f.t, f.o.Shell)
	}
	machine := e.box.machine
	e.running = true
	f.mu.Unlock()
	defer f.mu.Lock()
	out, in, done := openStream(w, r)
	defer done()
	code := f.runExec(e, machine, out, in)
	f.mu.Lock()
	e.running, e.code = false, &code
	f.mu.Unlock()
}

// openStream answers the request of a start and gives both directions of the connection.
func openStream(w http.ResponseWriter, r *http.Request) (out io.Writer, in io.Reader, done func()) {
	if r.Header.Get("Upgrade") == "tcp" {
		if conn, buffered, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.SetDeadline(time.Time{})
			_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
			return conn, buffered, func() { closeGently(conn) }
		}
	}
	w.Header().Set("Content-Type", "application/vnd.docker.raw-stream")
	w.WriteHeader(http.StatusOK)
	return w, bytes.NewReader(nil), func() {}
}

// closeGently closes a connection of which the client may still send: a close that leaves something unread resets
// a connection over TCP, and what was sent before is lost.
func closeGently(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, conn)
	}
	_ = conn.Close()
}

// runExec runs a command to its end. One that cannot be started has code 126 and a text of the runtime on
// stdout (engine 20.10).
func (f *Fake) runExec(e *exec, machine *wiretest.Machine, out io.Writer, in io.Reader) int {
	var mu sync.Mutex
	stdout, stderr := &frames{&mu, out, 1, e.tty}, &frames{&mu, out, 2, e.tty}
	p := e.p
	p.Stdout, p.Stderr = stdout, stderr
	if e.stdin {
		p.Stdin = in
	}
	why := ""
	if p.Dir != "" {
		if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
			why = fmt.Sprintf("chdir to cwd (%q) set in config.json failed: no such file or directory", p.Dir)
		}
	}
	if why == "" {
		run, err := machine.Start(p)
		switch {
		case wiretest.Missing(err):
			why = fmt.Sprintf("exec: %q: executable file not found in $PATH", p.Args[0])
		case errors.Is(err, fs.ErrPermission):
			why = fmt.Sprintf("exec: %q: permission denied", p.Args[0])
		case err != nil:
			return 137 // the container ends
		default:
			f.mu.Lock()
			e.run, e.pid = run, run.PID
			f.mu.Unlock()
			code, signal := run.Wait()
			if signal != 0 {
				code = 128 + int(signal)
			}
			return code
		}
	}
	_, _ = stdout.Write([]byte("OCI runtime exec failed: exec failed: unable to start container process: " + why + ": unknown\r\n"))
	return 126
}

// frames writes one stream of a multiplexed one; a terminal has no frames.
type frames struct {
	mu     *sync.Mutex
	to     io.Writer
	stream byte
	raw    bool
}

// Write implements io.Writer.
func (s *frames) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := p
	if !s.raw {
		text = binary.BigEndian.AppendUint32([]byte{s.stream, 0, 0, 0}, uint32(len(p)))
		text = append(text, p...)
	}
	if _, err := s.to.Write(text); err != nil {
		return 0, err
	}
	if w, ok := s.to.(http.ResponseWriter); ok {
		_ = http.NewResponseController(w).Flush()
	}
	return len(p), nil
}

// serveLogs sends the messages of a log, with follow until the container ends.
func (f *Fake) serveLogs(w http.ResponseWriter, r *http.Request, b *box) {
	q := r.URL.Query()
	var since time.Time
	if text := q.Get("since"); text != "" {
		var err error
		if since, err = parseTime(text); err != nil {
			refuse(w, http.StatusBadRequest, "%v", err)
			return
		}
	}
	until := time.Time{}
	if text := q.Get("until"); text != "" {
		var err error
		if until, err = parseTime(text); err != nil {
			refuse(w, http.StatusBadRequest, "%v", err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/vnd.docker.multiplexed-stream")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	defer f.WakeWhenOver(r, f.change)()
	var mu sync.Mutex
	streams := map[byte]*frames{1: {&mu, w, 1, b.tty}, 2: {&mu, w, 2, b.tty}}
	at := 0
	if tail, err := strconv.Atoi(q.Get("tail")); err == nil {
		at = tailOf(b.log, tail)
	}
	for {
		for ; at < len(b.log); at++ {
			if m := b.log[at]; !m.at.Before(since) && (until.IsZero() || m.at.Before(until)) {
				_, _ = streams[m.stream].Write([]byte(m.at.UTC().Format(time.RFC3339Nano) + " " + m.text))
			}
		}
		if q.Get("follow") != "1" || b.state != "running" || f.Over(r) {
			return
		}
		f.change.Wait()
	}
}

// parseTime reads a Unix time with a fraction or without.
func parseTime(text string) (time.Time, error) {
	seconds, fraction, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	n, err2 := strconv.ParseInt(fraction+strings.Repeat("0", max(0, 9-len(fraction))), 10, 64)
	return time.Unix(s, n), errors.Join(err, err2)
}

// tailOf is where the last n lines of a log begin.
func tailOf(log []entry, n int) int {
	at := len(log)
	for ; at > 0; at-- {
		if strings.HasSuffix(log[at-1].text, "\n") {
			if n == 0 {
				return at
			}
			n--
		}
	}
	return 0
}
