package e2btest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sbx/internal/providers/wiretest"
)

// proc is one process that envd knows.
type proc struct {
	tag   string
	args  []string
	run   *wiretest.Running
	stdin io.WriteCloser

	listener atomic.Pointer[frames] // who gets its output
}

// inside lists the routes of envd; the sandbox is chosen by a header.
func (f *Fake) inside() []wiretest.Route {
	prefix := "E2b"
	if f.o.Novita {
		prefix = "Novita"
	}
	routing := []string{prefix + "-Sandbox-Id", prefix + "-Sandbox-Port"}
	token := append([]string{"X-Access-Token"}, routing...)
	route := func(method, path string, headers []string, serve func(http.ResponseWriter, *http.Request, *box)) wiretest.Route {
		return wiretest.Route{Method: method, Path: path, Headers: headers, Raw: true, Serve: f.host(prefix+"-Sandbox-Id", headers[0], serve)}
	}
	return []wiretest.Route{
		route("GET", "/health", routing, func(w http.ResponseWriter, _ *http.Request, _ *box) { w.WriteHeader(http.StatusNoContent) }),
		route("GET", "/metrics", token, f.envdMetrics),
		route("POST", "/process.Process/Start", token, f.lossy(f.start)),
		route("POST", "/process.Process/Connect", token, f.lossy(f.attach)),
		route("POST", "/process.Process/List", token, f.processes),
		route("POST", "/process.Process/SendInput", token, f.sendInput),
		route("POST", "/process.Process/CloseStdin", token, f.closeStdin),
		route("POST", "/process.Process/SendSignal", token, f.sendSignal),
		route("POST", "/process.Process/Update", token, func(w http.ResponseWriter, _ *http.Request, _ *box) { wiretest.JSON(w, http.StatusOK, struct{}{}) }),
	}
}

// host answers as the edge does for a sandbox that is not there, is moving or is
// deaf, and as envd for a wrong token.
func (f *Fake) host(header, first string, serve func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(header)
		f.mu.Lock()
		b := f.known(id)
		answers, closed := f.hostAnswers(b), b != nil && b.closed
		f.mu.Unlock()
		switch {
		case !answers:
			wiretest.JSON(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox was not found", "code": http.StatusBadGateway})
		case closed:
			wiretest.JSON(w, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox is running but port is not open", "code": http.StatusBadGateway})
		case first == "X-Access-Token" && r.Header.Get("X-Access-Token") != b.token:
			wiretest.JSON(w, http.StatusUnauthorized, map[string]any{"code": http.StatusUnauthorized, "message": "unauthorized access, please provide a valid access token or method signing if supported"})
		default:
			serve(w, r, b)
		}
	}
}

// envdMetrics is what the VM measures now.
func (f *Fake) envdMetrics(w http.ResponseWriter, _ *http.Request, b *box) {
	f.mu.Lock()
	now := f.o.Now()
	used, total, cpu := b.memoryAt(now), b.figures.MemoryTotalMiB, b.figures.CPUPercent
	f.mu.Unlock()
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"ts": now.Unix(), "cpu_count": 2, "cpu_used_pct": cpu, "mem_total": total << 20, "mem_used": used,
		"mem_cache": int64(10 << 20), "mem_total_mib": total, "mem_used_mib": used >> 20, "disk_used": int64(1 << 30), "disk_total": int64(10 << 30),
	})
}

// frames writes a Connect stream.
type frames struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool // the client has left, or all is said
}

// end stops what a process that runs on would still write.
func (s *frames) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func (s *frames) send(flags byte, message any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	head := []byte{flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[1:], uint32(len(text)))
	_, _ = s.w.Write(append(head, text...))
	_ = http.NewResponseController(s.w).Flush() // a client that has left hears nothing
}

func (s *frames) event(kind string, value any) {
	s.send(0, map[string]any{"event": map[string]any{kind: value}})
}

// stream is an io.Writer for one of a process's streams.
type stream struct {
	p    *proc
	name string
}

// Write sends one data event to whoever listens last; nothing is kept for others.
func (d stream) Write(b []byte) (int, error) {
	d.p.listener.Load().event("data", map[string][]byte{d.name: b})
	return len(b), nil
}

type startRequest struct {
	Process struct {
		Cmd  string            `json:"cmd"`
		Args []string          `json:"args"`
		Envs map[string]string `json:"envs"`
		Cwd  string            `json:"cwd"`
	} `json:"process"`
	Tag   string `json:"tag"`
	Stdin bool   `json:"stdin"`
	PTY   any    `json:"pty"`
}

// start runs a process and streams it; the process does not end with its client.
func (f *Fake) start(w http.ResponseWriter, r *http.Request, b *box) {
	if r.Header.Get("Content-Type") != "application/connect+json" {
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var req startRequest
	if len(body) < 5 || json.Unmarshal(body[5:], &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/connect+json")
	s := &frames{w: w}
	defer s.end()
	if req.Process.Cwd != "" {
		if info, err := os.Stat(req.Process.Cwd); err != nil || !info.IsDir() {
			s.send(2, failure("invalid_argument", "cwd '"+req.Process.Cwd+"' does not exist"))
			return
		}
	}
	p, pid, err := f.spawn(b, req, s)
	if err != nil {
		f.notRun(s, pid, req, err)
		return
	}
	f.attend(s, r, p)
}

func failure(code, message string) map[string]any {
	return map[string]any{"error": map[string]string{"code": code, "message": message}}
}

// spawn starts the process with its streams on frames.
func (f *Fake) spawn(b *box, req startRequest, s *frames) (*proc, uint32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.machine == nil {
		b.machine = wiretest.NewMachine(f.t)
	}
	f.pids++
	pid := f.pids
	s.event("start", map[string]any{"pid": pid})
	p := &proc{tag: req.Tag, args: append([]string{req.Process.Cmd}, req.Process.Args...)}
	p.listener.Store(s)
	process := wiretest.Process{Args: append([]string{req.Process.Cmd}, req.Process.Args...), Dir: req.Process.Cwd, Stdout: stream{p, "stdout"}, Stderr: stream{p, "stderr"}}
	for _, env := range []map[string]string{b.env, req.Process.Envs} {
		for k, v := range env {
			process.Env = append(process.Env, k+"="+v)
		}
	}
	reader, writer := io.Pipe()
	if req.Stdin {
		process.Stdin, p.stdin = reader, writer
	}
	run, err := b.machine.Start(process)
	if err != nil {
		return nil, pid, err
	}
	go func() {
		<-run.Done()
		_ = reader.Close() // nobody reads it any more
	}()
	p.run = run
	b.procs[pid] = p
	b.logs = append(b.logs, entry{f.o.Now(), "process_start"})
	return p, pid, nil
}

// notRun is what the shell around a program says where it cannot be run.
func (f *Fake) notRun(s *frames, _ uint32, req startRequest, err error) {
	code, text := 127, "nice: '"+req.Process.Cmd+"': No such file or directory\n"
	if errors.Is(err, fs.ErrPermission) {
		code, text = 126, "nice: '"+req.Process.Cmd+"': Permission denied\n"
	} else if !wiretest.Missing(err) {
		s.send(2, failure("internal", err.Error()))
		return
	}
	s.event("data", map[string][]byte{"stderr": []byte(text)})
	s.event("end", map[string]any{"exitCode": code, "exited": true, "status": "exit status " + strconv.Itoa(code), "error": "exit status " + strconv.Itoa(code)})
	s.send(2, struct{}{})
}

// attend streams until the process ends, its time is over or the client leaves.
func (f *Fake) attend(s *frames, r *http.Request, p *proc) {
	every, err := strconv.Atoi(r.Header.Get("Keepalive-Ping-Interval"))
	if err != nil || every <= 0 {
		every = 90
	}
	ping := time.NewTicker(time.Duration(every) * time.Second)
	defer ping.Stop()
	limit := make(<-chan time.Time)
	if ms, err := strconv.Atoi(r.Header.Get("Connect-Timeout-Ms")); err == nil && ms > 0 {
		limit = time.After(time.Duration(ms) * time.Millisecond)
	}
	for {
		select {
		case <-ping.C:
			s.event("keepalive", struct{}{})
		case <-limit:
			_ = p.run.Signal(syscall.SIGKILL) // the process alone: its children live on
			s.send(2, failure("deadline_exceeded", "context deadline exceeded"))
			return
		case <-r.Context().Done():
			return
		case <-f.Ended():
			return
		case <-p.run.Done():
			s.event("end", ending(p.run))
			s.send(2, struct{}{})
			return
		}
	}
}

// ending is the end event as envd writes it: zero values are left out, and a
// death by signal is -1 with the signal's name.
func ending(run *wiretest.Running) map[string]any {
	code, signal := run.Wait()
	if signal != 0 {
		return map[string]any{"exitCode": -1, "status": "signal: " + signal.String(), "error": "signal: " + signal.String()}
	}
	end := map[string]any{"exited": true, "status": fmt.Sprintf("exit status %d", code)}
	if code != 0 {
		end["exitCode"], end["error"] = code, fmt.Sprintf("exit status %d", code)
	}
	return end
}

type selectRequest struct {
	Process struct {
		PID uint32 `json:"pid"`
		Tag string `json:"tag"`
	} `json:"process"`
	Input struct {
		Stdin []byte `json:"stdin"`
	} `json:"input"`
	Signal string `json:"signal"`
}

// attach streams a process from now on; one that has ended tells its end again.
func (f *Fake) attach(w http.ResponseWriter, r *http.Request, b *box) {
	body, _ := io.ReadAll(r.Body)
	var req selectRequest
	if len(body) < 5 || json.Unmarshal(body[5:], &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/connect+json")
	s := &frames{w: w}
	defer s.end()
	pid, p := f.selected(b, req)
	if p == nil {
		s.send(2, failure("not_found", "no such process"))
		return
	}
	s.event("start", map[string]any{"pid": pid})
	p.listener.Store(s)
	f.attend(s, r, p)
}

// selected finds the process that a call names; nil without one.
func (f *Fake) selected(b *box, req selectRequest) (uint32, *proc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for pid, p := range b.procs {
		if pid == req.Process.PID || (req.Process.Tag != "" && p.tag == req.Process.Tag) {
			return pid, p
		}
	}
	return 0, nil
}

// chosen is selected for unary calls; it answers 404 without a process.
func (f *Fake) chosen(w http.ResponseWriter, r *http.Request, b *box) (*proc, selectRequest) {
	var req selectRequest
	wiretest.Decode(r, &req)
	if _, p := f.selected(b, req); p != nil {
		return p, req
	}
	wiretest.JSON(w, http.StatusNotFound, map[string]string{"code": "not_found", "message": fmt.Sprintf("process with pid %d not found", req.Process.PID)})
	return nil, req
}

func (f *Fake) sendInput(w http.ResponseWriter, r *http.Request, b *box) {
	p, req := f.chosen(w, r, b)
	if p == nil {
		return
	}
	select {
	case <-p.run.Done():
	default:
		_, _ = p.stdin.Write(req.Input.Stdin) // a process that has closed it reads no more
	}
	wiretest.JSON(w, http.StatusOK, struct{}{})
}

func (f *Fake) closeStdin(w http.ResponseWriter, r *http.Request, b *box) {
	if p, _ := f.chosen(w, r, b); p != nil {
		_ = p.stdin.Close()
		wiretest.JSON(w, http.StatusOK, struct{}{})
	}
}

// sendSignal knows 9 and 15 alone, and reaches the process without its children.
func (f *Fake) sendSignal(w http.ResponseWriter, r *http.Request, b *box) {
	p, req := f.chosen(w, r, b)
	if p == nil {
		return
	}
	switch req.Signal {
	case "SIGNAL_SIGKILL":
		_ = p.run.Signal(syscall.SIGKILL)
	case "SIGNAL_SIGTERM":
		_ = p.run.Signal(syscall.SIGTERM)
	default:
		wiretest.JSON(w, http.StatusNotImplemented, map[string]string{"code": "unimplemented", "message": "unknown signal"})
		return
	}
	wiretest.JSON(w, http.StatusOK, struct{}{})
}

// Processes gives the real processes that run in a sandbox, for a test to kill.
func (f *Fake) Processes(id string) []*wiretest.Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*wiretest.Running
	if b := f.known(id); b != nil {
		for _, p := range b.procs {
			select {
			case <-p.run.Done():
			default:
				all = append(all, p.run)
			}
		}
	}
	return all
}
