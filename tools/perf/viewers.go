package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// viewer is a full-screen program.
type viewer struct {
	name    string
	starts  int // to a first frame, at most
	program string
	start   func(s stage, at string) (*exec.Cmd, error) // prepares it for a world
	frame   string                                      // what its first frame has
	full    string                                      // what it draws when it has read its whole fleet
	paused  string                                      // what it draws after the key p; "" = it has no pause
	fleets  []fleet
	budgets struct{ frame, peak, bytes string }
}

// fleet is what a viewer shows: viewRows things of a world. Without a kind it is what the machine has.
type fleet struct {
	name string
	kind string
	age  time.Duration
}

// viewers are the product and those that others wrote.
func (s stage) viewers() []viewer {
	ours := viewer{
		name: "`sbx dashboard`", starts: 20, program: s.sbx, frame: "reading ...", full: fmt.Sprintf("active %d", viewRows), paused: "PAUSED",
		start: func(s stage, at string) (*exec.Cmd, error) { return s.onE2B(at, "dashboard") },
		fleets: []fleet{
			{"10,000 that their records decide", "e2b-work", time.Minute},
			{"10,000 that have to be probed", "e2b-work", time.Hour},
		},
	}
	ours.budgets.frame, ours.budgets.peak, ours.budgets.bytes = "100", "60", "4"
	return []viewer{ours, {
		name: "k9s", starts: 5, program: "k9s", start: k9s, frame: "Context:", full: fmt.Sprintf("[%d]", viewRows),
		fleets: []fleet{{"10,000 pods", "pods", time.Hour}},
	}, {
		name: "lazydocker", starts: 5, program: "lazydocker", start: lazydocker, frame: "Containers",
		fleets: []fleet{{name: "the containers of this machine"}},
	}}
}

// k9s prepares k9s with a configuration and a home of its own.
func k9s(s stage, at string) (*exec.Cmd, error) {
	file := filepath.Join(s.dir, "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: perf,
clusters: [{name: perf, cluster: {server: "http://%s"}}], users: [{name: perf, user: {}}],
contexts: [{name: perf, context: {cluster: perf, user: perf, namespace: default}}]}
`, at)
	return s.command("k9s", "--kubeconfig", file, "--readonly", "--logoless", "--splashless", "--command", "pods"), os.WriteFile(file, []byte(text), 0o600)
}

// lazydocker has no fake: it needs a daemon that answers.
func lazydocker(s stage, _ string) (*exec.Cmd, error) {
	cmd := s.command("lazydocker")
	cmd.Env = append(cmd.Env, "DOCKER_HOST="+os.Getenv("DOCKER_HOST"))
	if said, err := exec.Command("docker", "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("no Docker daemon answers: %w: %s", err, bytes.TrimSpace(said))
	}
	return cmd, nil
}
