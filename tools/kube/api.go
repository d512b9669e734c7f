package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/creack/pty"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// listen serves what the API server asks a kubelet for: commands and logs.
func (k *kubelet) listen(address string) (int32, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return 0, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return 0, err
	}
	l, err := tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return 0, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{ns}/{pod}/{container}", k.serveExec)
	mux.HandleFunc("/containerLogs/{ns}/{pod}/{container}", k.serveLog)
	go func() { _ = http.Serve(l, mux) }() //nolint:gosec // it ends with the program
	_, text, _ := net.SplitHostPort(l.Addr().String())
	port, err := strconv.ParseInt(text, 10, 32)
	return int32(port), err
}

// containerOf is the container of a request; nil for none.
func (k *kubelet) containerOf(r *http.Request) *container {
	o, err := k.podOf(r)
	if err != nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[o]; p != nil {
		return p.containers[r.PathValue("container")]
	}
	return nil
}

func (k *kubelet) podOf(r *http.Request) (types.UID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	uid, ok := k.names[r.PathValue("ns")+"/"+r.PathValue("pod")]
	if !ok {
		return "", errors.New("no such pod")
	}
	return uid, nil
}

func (k *kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	c := k.containerOf(r)
	if c == nil {
		http.Error(w, "container not found", http.StatusNotFound)
		return
	}
	streams, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, executor{c}, "", "", "", r.URL.Query()["command"], streams, 4*time.Hour, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

// executor runs the commands of one container. A command goes on when its client is gone, as in containerd.
type executor struct{ c *container }

func (e executor) ExecInContainer(_ context.Context, _, _, _ string, args []string, in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	cmd, err := e.c.command(args)
	if err != nil {
		return err
	}
	if tty {
		err = runTerminal(cmd, in, out, resize)
	} else {
		err = runPlain(cmd, in, out, errs)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code := exit.ExitCode()
		if code < 0 {
			code = 137
		}
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	return err
}

func runPlain(cmd *exec.Cmd, in io.Reader, out, errs io.Writer) error {
	if out != nil {
		cmd.Stdout = out
	}
	if errs != nil {
		cmd.Stderr = errs
	}
	if in != nil {
		input, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(input, in)
			_ = input.Close()
		}()
	}
	return cmd.Run()
}

func runTerminal(cmd *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	terminal, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	defer terminal.Close()
	go func() {
		for size := range resize {
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	_, _ = io.Copy(out, terminal)
	return cmd.Wait()
}

// serveLog answers with the lines of a container, and with new ones until it ends where they are followed.
func (k *kubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	c := k.containerOf(r)
	if c == nil {
		http.Error(w, "container not found", http.StatusNotFound)
		return
	}
	q := r.URL.Query()
	var since time.Time
	if seconds, err := strconv.Atoi(q.Get("sinceSeconds")); err == nil {
		since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	if at, err := time.Parse(time.RFC3339, q.Get("sinceTime")); err == nil {
		since = at
	}
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	at := 0
	if n, err := strconv.Atoi(q.Get("tailLines")); err == nil {
		at = max(0, len(l.lines)-n)
	}
	stop := context.AfterFunc(r.Context(), l.wake)
	defer stop()
	for {
		lines := slices.Clone(l.lines[at:])
		at += len(lines)
		closed := l.closed
		l.mu.Unlock()
		for _, line := range lines {
			if line.at.Before(since) {
				continue
			}
			if q.Get("timestamps") == "true" {
				_, _ = io.WriteString(w, line.at.UTC().Format(time.RFC3339Nano)+" ")
			}
			_, _ = io.WriteString(w, line.text+"\n")
		}
		_ = http.NewResponseController(w).Flush()
		l.mu.Lock()
		if q.Get("follow") != "true" || r.Context().Err() != nil || closed && at == len(l.lines) {
			return
		}
		if at == len(l.lines) && !l.closed {
			l.more.Wait()
		}
	}
}
