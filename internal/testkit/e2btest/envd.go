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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sbx/internal/testkit/wiretest"
)

type envdProcess struct {
	tag   string
	args  []string
	run   *wiretest.Running
	stdin io.WriteCloser

	listener atomic.Pointer[frameWriter] // receives its output
}

func (f *Fake) envdRoutes() []wiretest.Route {
	prefix := "E2b"
	if f.o.Novita {
		prefix = "Novita"
	}
	routing := []string{prefix + "-Sandbox-Id", prefix + "-Sandbox-Port"}
	token := append([]string{"X-Access-Token"}, routing...)
	route := func(method, path string, headers []string, serve func(http.ResponseWriter, *http.Request, *box)) wiretest.Route {
		return wiretest.Route{Method: method, Path: path, Headers: headers, Raw: true, Serve: f.proxyHost(prefix+"-Sandbox-Id", headers[0], serve)}
	}
	return []wiretest.Route{
		route("GET", "/health", routing, func(w http.ResponseWriter, _ *http.Request, _ *box) { w.WriteHeader(http.StatusNoContent) }),
		route("GET", "/metrics", token, f.handleEnvdMetrics),
		route("POST", "/process.Process/Start", token, f.loseStreams(f.handleStart)),
		route("POST", "/process.Process/Connect", token, f.loseStreams(f.handleConnectProcess)),
		route("POST", "/process.Process/List", token, f.logged("list", f.handleProcesses)),
		route("POST", "/process.Process/SendInput", token, f.handleSendInput),
		route("POST", "/process.Process/CloseStdin", token, f.handleCloseStdin),
		route("POST", "/process.Process/SendSignal", token, f.logged("sendSignal", f.handleSendSignal)),
		route("POST", "/process.Process/Update", token, func(w http.ResponseWriter, _ *http.Request, _ *box) { wiretest.JSON(w, http.StatusOK, struct{}{}) }),
	}
}

// proxyHost answers as the edge for a missing sandbox and for a closed port, and as envd for a wrong
// token.
func (f *Fake) proxyHost(header, first string, serve func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(header)
		f.mu.Lock()
		b := f.findAny(id)
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

func (f *Fake) handleEnvdMetrics(w http.ResponseWriter, _ *http.Request, b *box) {
	f.mu.Lock()
	now := f.o.Now()
	used, total, cpu := b.memoryAt(now), b.figures.MemoryTotalMiB, b.figures.CPUPercent
	f.mu.Unlock()
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"ts": now.Unix(), "cpu_count": 2, "cpu_used_pct": cpu, "mem_total": total << 20, "mem_used": used,
		"mem_cache": int64(10 << 20), "mem_total_mib": total, "mem_used_mib": used >> 20, "disk_used": int64(1 << 30), "disk_total": int64(10 << 30),
	})
}

// logged logs a call with one answer, as envd's interceptor does.
func (f *Fake) logged(method string, serve func(http.ResponseWriter, *http.Request, *box)) func(http.ResponseWriter, *http.Request, *box) {
	return func(w http.ResponseWriter, r *http.Request, b *box) {
		serve(w, r, b)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls++
		f.logCall(b, f.calls, "Process "+method, map[string]string{"method": r.Method + " " + r.URL.Path})
	}
}

type frameWriter struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool // the client has disconnected, or the stream is complete
}

func (s *frameWriter) closeStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

func (s *frameWriter) sendFrame(flags byte, message any) {
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
	_ = http.NewResponseController(s.w).Flush() // a client may have disconnected
}

func (s *frameWriter) sendEvent(kind string, value any) {
	s.sendFrame(0, map[string]any{"event": map[string]any{kind: value}})
}

type dataWriter struct {
	p    *envdProcess
	name string
}

// Write sends one data event to the last listener; nothing is kept for others.
func (d dataWriter) Write(b []byte) (int, error) {
	d.p.listener.Load().sendEvent("data", map[string][]byte{d.name: b})
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

// handleStart starts a process and streams it; the process does not end with its client.
func (f *Fake) handleStart(w http.ResponseWriter, r *http.Request, b *box) {
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
	s := &frameWriter{w: w}
	defer s.closeStream()
	if req.Process.Cwd != "" {
		if info, err := os.Stat(req.Process.Cwd); err != nil || !info.IsDir() {
			s.sendFrame(2, endError("invalid_argument", "cwd '"+req.Process.Cwd+"' does not exist"))
			return
		}
	}
	f.mu.Lock()
	f.calls++
	op := f.calls
	f.logCall(b, op, "Process start (server stream start)", map[string]string{"method": r.Method + " " + r.URL.Path})
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logCall(b, op, "Process start (server stream end)", nil)
	}()
	p, err := f.startProcess(b, req, s, op)
	if err != nil {
		f.reportNotRun(s, req, err)
		return
	}
	f.streamProcess(s, r, p)
}

func endError(code, message string) map[string]any {
	return map[string]any{"error": map[string]string{"code": code, "message": message}}
}

func (f *Fake) startProcess(b *box, req startRequest, s *frameWriter, op int) (*envdProcess, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.machine == nil {
		b.machine = wiretest.NewMachine(f.t, f.o.Shell)
	}
	f.pids++
	pid := f.pids
	s.sendEvent("start", map[string]any{"pid": pid})
	p := &envdProcess{tag: req.Tag, args: append([]string{req.Process.Cmd}, req.Process.Args...)}
	p.listener.Store(s)
	process := wiretest.Process{Args: append([]string{req.Process.Cmd}, req.Process.Args...), Dir: req.Process.Cwd, Stdout: dataWriter{p, "stdout"}, Stderr: dataWriter{p, "stderr"}}
	process.AddEnv(b.env, req.Process.Envs)
	reader, writer := io.Pipe()
	if req.Stdin {
		process.Stdin, p.stdin = reader, writer
	}
	run, err := b.machine.Start(process)
	if err != nil {
		return nil, err
	}
	p.run = run
	b.procs[pid] = p
	f.logCall(b, op, fmt.Sprintf("Process with pid %d started", pid), map[string]string{"event_type": "process_start", "command": strings.Join(p.args, " ")})
	go func() {
		<-run.Done()
		_ = reader.Close() // it has no reader any more
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logCall(b, op, fmt.Sprintf("Process with pid %d ended", pid), map[string]string{"event_type": "process_end"})
	}()
	return p, nil
}

// reportNotRun sends the output of the shell for a program that cannot be run.
func (f *Fake) reportNotRun(s *frameWriter, req startRequest, err error) {
	code, text := 127, "nice: '"+req.Process.Cmd+"': No such file or directory\n"
	if errors.Is(err, fs.ErrPermission) {
		code, text = 126, "nice: '"+req.Process.Cmd+"': Permission denied\n"
	} else if !wiretest.Missing(err) {
		s.sendFrame(2, endError("internal", err.Error()))
		return
	}
	s.sendEvent("data", map[string][]byte{"stderr": []byte(text)})
	s.sendEvent("end", map[string]any{"exitCode": code, "exited": true, "status": "exit status " + strconv.Itoa(code), "error": "exit status " + strconv.Itoa(code)})
	s.sendFrame(2, struct{}{})
}

// streamProcess streams until the process ends, its limit is reached or the client disconnects.
func (f *Fake) streamProcess(s *frameWriter, r *http.Request, p *envdProcess) {
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
			s.sendEvent("keepalive", struct{}{})
		case <-limit:
			_ = p.run.Signal(syscall.SIGKILL) // not its children
			s.sendFrame(2, endError("deadline_exceeded", "context deadline exceeded"))
			return
		case <-r.Context().Done():
			return
		case <-f.Ended():
			return
		case <-p.run.Done():
			s.sendEvent("end", endEvent(p.run))
			s.sendFrame(2, struct{}{})
			return
		}
	}
}

// endEvent is the end event of envd: zero values are omitted, and a death by signal is -1 with the
// signal's name.
func endEvent(run *wiretest.Running) map[string]any {
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

// handleConnectProcess streams a process from now on; for an ended one it sends the end again.
func (f *Fake) handleConnectProcess(w http.ResponseWriter, r *http.Request, b *box) {
	body, _ := io.ReadAll(r.Body)
	var req selectRequest
	if len(body) < 5 || json.Unmarshal(body[5:], &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/connect+json")
	s := &frameWriter{w: w}
	defer s.closeStream()
	pid, p := f.selectProcess(b, req)
	if p == nil {
		s.sendFrame(2, endError("not_found", "no such process"))
		return
	}
	s.sendEvent("start", map[string]any{"pid": pid})
	p.listener.Store(s)
	f.streamProcess(s, r, p)
}

// selectProcess finds the process of a call; nil without one.
func (f *Fake) selectProcess(b *box, req selectRequest) (uint32, *envdProcess) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for pid, p := range b.procs {
		if pid == req.Process.PID || (req.Process.Tag != "" && p.tag == req.Process.Tag) {
			return pid, p
		}
	}
	return 0, nil
}

// requireProcess is selectProcess for unary calls; it answers 404 without a process.
func (f *Fake) requireProcess(w http.ResponseWriter, r *http.Request, b *box) (*envdProcess, selectRequest) {
	var req selectRequest
	wiretest.Decode(r, &req)
	if _, p := f.selectProcess(b, req); p != nil {
		return p, req
	}
	wiretest.JSON(w, http.StatusNotFound, map[string]string{"code": "not_found", "message": fmt.Sprintf("process with pid %d not found", req.Process.PID)})
	return nil, req
}

func (f *Fake) handleSendInput(w http.ResponseWriter, r *http.Request, b *box) {
	p, req := f.requireProcess(w, r, b)
	if p == nil {
		return
	}
	if !p.run.HasEnded() {
		_, _ = p.stdin.Write(req.Input.Stdin) // the process may have closed it
	}
	wiretest.JSON(w, http.StatusOK, struct{}{})
}

func (f *Fake) handleCloseStdin(w http.ResponseWriter, r *http.Request, b *box) {
	if p, _ := f.requireProcess(w, r, b); p != nil {
		_ = p.stdin.Close()
		wiretest.JSON(w, http.StatusOK, struct{}{})
	}
}

// handleSendSignal supports signals 9 and 15, and signals the process without its children.
func (f *Fake) handleSendSignal(w http.ResponseWriter, r *http.Request, b *box) {
	p, req := f.requireProcess(w, r, b)
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

// Processes are the real processes of a sandbox, for a test to kill.
func (f *Fake) Processes(id string) []*wiretest.Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*wiretest.Running
	if b := f.findAny(id); b != nil {
		for _, p := range b.procs {
			if !p.run.HasEnded() {
				all = append(all, p.run)
			}
		}
	}
	return all
}
