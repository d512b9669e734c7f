package verceltest

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sbx/internal/testkit/wiretest"
)

type command struct {
	id, name string
	args     []string
	started  time.Time
	run      *wiretest.Running
	ran      time.Duration // once it has ended
	failed   int           // the exit code of a command that could not be run

	mu     sync.Mutex
	chunks []map[string]any
	more   chan struct{} // closed and replaced at every chunk
}

func (c *command) isDone() bool { return c.run == nil || c.run.HasEnded() }

// reportedCode is the exit code of the service: 128+n for a death by signal.
func (c *command) reportedCode() any {
	if !c.isDone() {
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

func (c *command) addChunk(stream string, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chunks = append(c.chunks, map[string]any{"stream": stream, "data": string(text)})
	close(c.more)
	c.more = make(chan struct{})
}

// chunksFrom are the chunks from n on, and a channel that is closed when there are more.
func (c *command) chunksFrom(n int) ([]map[string]any, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chunks[n:], c.more
}

func (c *command) toJSON(sessionID string) map[string]any {
	fields := map[string]any{
		"id": c.id, "name": c.name, "args": c.args, "cwd": "/vercel/sandbox", "sessionId": sessionID, "exitCode": c.reportedCode(), "startedAt": c.started.UnixMilli(),
	}
	if c.isDone() {
		c.mu.Lock()
		fields["durationMs"] = c.ran.Milliseconds()
		c.mu.Unlock()
	}
	return fields
}

type chunkWriter struct {
	c      *command
	stream string
}

// Write keeps a chunk.
func (w chunkWriter) Write(b []byte) (int, error) {
	w.c.addChunk(w.stream, b)
	return len(b), nil
}

// findRunning finds a running session; for any other it refuses the request.
func (f *Fake) findRunning(w http.ResponseWriter, id string) *vm {
	_, v := f.findSession(id)
	switch {
	case v == nil:
		refuseRequest(w, http.StatusNotFound, "not_found", "no session %s", id)
		return nil
	case v.status == "stopping":
		refuseRequest(w, http.StatusUnprocessableEntity, "sandbox_stopping", "the sandbox is stopping")
		return nil
	case v.status != "running":
		refuseRequest(w, http.StatusGone, "sandbox_stopped", "the sandbox is %s", v.status)
		return nil
	}
	return v
}

// handleRun starts a command and streams it: the command, its output, the command with its exit
// code.
func (f *Fake) handleRun(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	v := f.findRunning(w, r.PathValue("id"))
	if v == nil {
		f.mu.Unlock()
		return
	}
	c := f.startCommand(r, v)
	f.mu.Unlock()
	if f.o.Quick && c.run != nil {
		<-c.run.Done()
	}
	s := newNDJSON(w)
	s.writeLine(map[string]any{"command": c.toJSON(v.id)})
	if !f.streamOutput(s, r, c, v) {
		return
	}
	s.writeLine(map[string]any{"command": c.toJSON(v.id)})
}

// startCommand starts a process and records its output. The lock is held.
func (f *Fake) startCommand(r *http.Request, v *vm) *command {
	var body struct {
		Command string
		Args    []string
		Cwd     string
		Env     map[string]string
		Timeout int64
	}
	wiretest.Decode(r, &body)
	b, _ := f.findSession(v.id)
	c := &command{id: "cmd_" + strconv.Itoa(len(v.commands)+1), name: body.Command, args: body.Args, started: f.o.Now(), more: make(chan struct{})}
	if c.args == nil {
		c.args = []string{}
	}
	v.commands = append(v.commands, c)
	p := wiretest.Process{Args: append([]string{body.Command}, body.Args...), Dir: body.Cwd, Stdout: chunkWriter{c, "stdout"}, Stderr: chunkWriter{c, "stderr"}}
	p.AddEnv(b.env, body.Env)
	f.redirectCounters(v, &p)
	run, err := f.machineOf(v).Start(p)
	if err != nil {
		c.failed = 127
		if errors.Is(err, os.ErrPermission) {
			c.failed = 126
		}
		if info, failed := os.Stat(p.Dir); p.Dir != "" && (failed != nil || !info.IsDir()) {
			return c // without a word
		}
		c.addChunk("stderr", []byte("sh: "+body.Command+": "+err.Error()+": not found\n"))
		return c
	}
	c.run = run
	go c.enforceLimit(time.Duration(body.Timeout) * time.Millisecond)
	return c
}

// enforceLimit kills a command at its limit, as the service does, and records how long it ran.
func (c *command) enforceLimit(limit time.Duration) {
	if limit > 0 {
		defer time.AfterFunc(limit, func() { _ = c.run.Signal(syscall.SIGKILL) }).Stop()
	}
	began := time.Now()
	<-c.run.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran = time.Since(began)
}

type ndjson struct{ w http.ResponseWriter }

func newNDJSON(w http.ResponseWriter) ndjson {
	w.Header().Set("Content-Type", "application/x-ndjson")
	return ndjson{w}
}

func (n ndjson) writeLine(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	_, _ = n.w.Write(append(text, '\n'))
	_ = http.NewResponseController(n.w).Flush() // a client may have disconnected
}

// streamOutput sends a command's output until it has ended; false when the client disconnects or the
// session ends before.
func (f *Fake) streamOutput(s ndjson, r *http.Request, c *command, v *vm) bool {
	for sent := 0; ; {
		over := c.isDone() // read first, so that the last chunks are included
		chunks, more := c.chunksFrom(sent)
		for _, chunk := range chunks {
			s.writeLine(chunk)
		}
		sent += len(chunks)
		if over {
			f.mu.Lock()
			aborted := v.isOver()
			f.mu.Unlock()
			if aborted {
				s.writeLine(map[string]any{"stream": "error", "data": map[string]string{"code": "sandbox_stopped", "message": "the sandbox stopped"}})
			}
			return !aborted
		}
		select {
		case <-more:
		case <-c.run.Done():
		case <-r.Context().Done():
			return false
		case <-f.Ended():
			return false
		}
	}
}

func (f *Fake) handleLogs(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	c, v := f.findCommand(w, r)
	f.mu.Unlock()
	if c != nil {
		f.streamOutput(newNDJSON(w), r, c, v)
	}
}

// findCommand finds the command of a request; without one it refuses the request and returns nil. The
// lock is held.
func (f *Fake) findCommand(w http.ResponseWriter, r *http.Request) (*command, *vm) {
	v := f.findRunning(w, r.PathValue("id"))
	if v == nil {
		return nil, nil
	}
	for _, c := range v.commands {
		if c.id == r.PathValue("cmd") {
			return c, v
		}
	}
	refuseRequest(w, http.StatusNotFound, "not_found", "no command")
	return nil, nil
}

func (f *Fake) handleGetCommand(w http.ResponseWriter, r *http.Request) {
	if c, v := f.findCommand(w, r); c != nil {
		wiretest.JSON(w, http.StatusOK, map[string]any{"command": c.toJSON(v.id)})
	}
}

func (f *Fake) handleListCommands(w http.ResponseWriter, r *http.Request) {
	v := f.findRunning(w, r.PathValue("id"))
	if v == nil {
		return
	}
	rows := []any{}
	for i := range v.commands {
		rows = append(rows, v.commands[len(v.commands)-1-i].toJSON(v.id))
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"commands": rows})
}

func (f *Fake) handleKill(w http.ResponseWriter, r *http.Request) {
	c, v := f.findCommand(w, r)
	if c == nil {
		return
	}
	var body struct{ Signal int }
	wiretest.Decode(r, &body)
	if c.run != nil {
		_ = c.run.Signal(syscall.Signal(body.Signal)) // the command may have ended
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"command": c.toJSON(v.id)})
}

func (f *Fake) handleWrite(w http.ResponseWriter, r *http.Request) {
	v := f.findRunning(w, r.PathValue("id"))
	if v == nil {
		return
	}
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		refuseRequest(w, http.StatusBadRequest, "bad_request", "%v", err)
		return
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err != nil {
			break
		}
		text, _ := io.ReadAll(archive)
		if err := os.WriteFile(filepath.Join(f.machineOf(v).Home, filepath.Base(header.Name)), text, 0o600); err != nil {
			refuseRequest(w, http.StatusInternalServerError, "internal", "%v", err)
			return
		}
	}
	wiretest.JSON(w, http.StatusOK, struct{}{})
}

// What a command reads to measure its VM: the counters of the control group, and the machine's clock.
const (
	cgroupRoot = "/sys/fs/cgroup"
	uptimeFile = "/proc/uptime"
)

// redirectCounters gives a command that reads counters those of its VM, with Show or Options.Rests: otherwise it would
// read those of this host. In it a second of sleep is the VM's own, in which its programs use what Show says: it takes
// no real time. The lock is held.
func (f *Fake) redirectCounters(v *vm, p *wiretest.Process) {
	measures := slices.ContainsFunc(p.Args, func(arg string) bool { return strings.Contains(arg, cgroupRoot) })
	if !measures || v.figures == nil && !f.o.Rests {
		return
	}
	dir := filepath.Join(f.machineOf(v).Home, ".counters", strconv.Itoa(len(v.commands)))
	for i, arg := range p.Args {
		p.Args[i] = strings.NewReplacer(cgroupRoot, dir, uptimeFile, filepath.Join(dir, "uptime")).Replace(arg)
	}
	figures := Figures{MemoryMiB: 64, LimitMiB: 4096}
	if v.figures != nil {
		figures = *v.figures
	}
	used := figures.MemoryMiB + figures.MemoryMiBPerMinute*f.o.Now().Sub(v.since).Minutes()
	memory := strconv.FormatInt(int64(used)<<20, 10)
	before := 1e6 + int64(figures.CPUPercent*1e4*f.o.Now().Sub(v.started).Seconds()) // microseconds
	files := map[string]string{
		"memory.current": memory, "memory.max": strconv.FormatInt(figures.LimitMiB<<20, 10), "memory.peak": memory, "memory.stat": "inactive_file 0",
		"pids.current": "3", "cpu.stat": fmt.Sprintf("usage_usec %d", before), "memory.events": "oom_kill 0", "uptime": "100.00 0",
		"bin/sleep": fmt.Sprintf("#!/bin/sh\necho usage_usec %d >%s/cpu.stat\necho 101.00 0 >%[2]s/uptime", before+int64(figures.CPUPercent*1e4), dir),
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		f.t.Errorf("counters: %v", err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o700); err != nil {
			f.t.Errorf("counters: %v", err)
		}
	}
	p.Bin = filepath.Join(dir, "bin")
}
