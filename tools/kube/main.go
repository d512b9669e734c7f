// Kube runs a command beside a real control plane of Kubernetes on this machine: etcd, the API server, the
// controller manager, the scheduler and the controller of agent-sandbox, and one kubelet of ours (node.go) that
// runs the programs of pods. All of it listens on loopback and ends with the command.
//
//	go build -o BIN tool && go run . -bin BIN -crds DIR -dir DIR -- go test ./...
//
// The command finds the kubeconfig of an administrator in SBX_TEST_KUBERNETES, and in SBX_TEST_RESTART a shell
// command that restarts the API server and waits until it answers: SIGHUP, sent to this program, which then makes
// a file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	var c cluster
	flag.StringVar(&c.bin, "bin", "bin", "folder of the programs")
	flag.StringVar(&c.crds, "crds", "crds", "folder of the definitions of agent-sandbox")
	flag.StringVar(&c.dir, "dir", "", "folder of the cluster's data; it must be empty")
	flag.Parse()
	if c.dir == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: kube -bin BIN -crds DIR -dir DIR -- COMMAND...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, &c, flag.Args()))
}

func run(ctx context.Context, c *cluster, command []string) int {
	defer c.stop()
	if err := c.start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		return unavailable
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	answers := c.path("answers")
	restart := fmt.Sprintf("rm -f '%[1]s'; kill -HUP %[2]d; until [ -e '%[1]s' ]; do sleep 0.1; done", answers, os.Getpid())
	cmd.Env = append(os.Environ(), "SBX_TEST_KUBERNETES="+c.kubeconfig, "SBX_TEST_RESTART="+restart)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			if err := c.restartServer(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "kube:", err)
			}
			_ = os.WriteFile(answers, nil, 0o600)
		}
	}()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		return 1
	}
	return 0
}

// unavailable is the exit code of a cluster that does not start: that of automake for a test that was skipped.
const unavailable = 77
