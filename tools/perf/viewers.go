package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// viewer is a full-screen program.
type viewer struct {
	name    string
	program string
	starts  int                                         // to a first frame, at most
	start   func(s stage, at string) (*exec.Cmd, error) // prepares it for a world
	frame   string                                      // what its first frame has
	full    string                                      // what it draws when it has read its whole fleet
	paused  string                                      // what it draws after the key p; "" = it has no pause
	fleets  []fleet
	budgets struct{ frame, peak, bytes string }
}

// viewers are the product and those that others wrote.
func (s stage) viewers() []viewer {
	ours := viewer{
		name: "`sbx dashboard`", program: s.sbx, starts: 20, frame: "reading ...", full: fmt.Sprintf("All %d", viewRows), paused: "PAUSED",
		start: func(s stage, at string) (*exec.Cmd, error) { return s.onE2B(at, "dashboard") },
		fleets: []fleet{
			{"10,000 that their records decide", "e2b-work", time.Minute},
			{"10,000 that have to be probed", "e2b-work", time.Hour},
		},
	}
	ours.budgets.frame, ours.budgets.peak, ours.budgets.bytes = "100", "60", "4"
	return []viewer{ours, {
		name: "k9s", program: "k9s", starts: 5, start: k9s, frame: "Context:", full: fmt.Sprintf("[%d]", viewRows),
		fleets: []fleet{{"10,000 pods", "pods", time.Hour}},
	}, {
		name: "lazydocker", program: "lazydocker", starts: 5, start: lazydocker, frame: "Containers",
		fleets: []fleet{{name: "the containers of this machine"}},
	}}
}

// k9s has a configuration and a home of its own.
func k9s(s stage, at string) (*exec.Cmd, error) {
	file := filepath.Join(s.dir, "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: perf,
clusters: [{name: perf, cluster: {server: "http://%s"}}], users: [{name: perf, user: {}}],
contexts: [{name: perf, context: {cluster: perf, user: perf, namespace: default}}]}
`, at)
	return s.command("k9s", "--kubeconfig", file, "--readonly", "--command", "pods"), os.WriteFile(file, []byte(text), 0o600)
}

// lazydocker has no fake: it needs a daemon that answers.
func lazydocker(s stage, _ string) (*exec.Cmd, error) {
	if said, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
		return nil, fmt.Errorf("no Docker daemon: %w: %s", err, lines[len(lines)-1])
	}
	cmd := s.command("lazydocker")
	cmd.Env = append(cmd.Env, "DOCKER_HOST="+os.Getenv("DOCKER_HOST"))
	return cmd, nil
}

// fleet is what a viewer shows: viewRows things of a world, or without a kind what the machine has.
type fleet struct {
	name string
	kind string // of world
	age  time.Duration
}

// open makes its world, and gives the address.
func (f fleet) open(server string, takes time.Duration) (string, error) {
	if f.kind == "" {
		return "", nil
	}
	at, err := ask(http.MethodPost, fmt.Sprintf("%s/%s/%d?takes=%s&age=%s", server, f.kind, viewRows, takes, f.age))
	return string(at), err
}

// rounds is how often it was read so far, by the pages that its world has served; 0 without one.
func (f fleet) rounds(server, at string) float64 {
	var t tally
	if raw, err := ask(http.MethodGet, server+"/"+at); err != nil || json.Unmarshal(raw, &t) != nil {
		return 0
	}
	return float64(t.Kinds["list"].N) / (viewRows / pageRows)
}
