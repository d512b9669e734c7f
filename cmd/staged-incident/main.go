// Command staged-incident serves a staged incident on loopback: 300 sandboxes on fakes of
// E2B, Novita and MonoTask, of which 26 are stuck and 10 cannot be judged.
//
//	go run ./cmd/staged-incident              prints the environment and serves until Ctrl-C
//	go run ./cmd/staged-incident -- COMMAND   runs COMMAND in that environment
//
// The environment has its own configuration and state directory, so that those of the user are neither
// read nor written. It is for development and is not released.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"sbx/internal/testkit/stagedfleet"
)

func main() { os.Exit(runTool(os.Args, os.Stdout, os.Stderr)) }

func runTool(args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(errOut)
	seed := flags.Uint64("seed", 1, "another number stages other ages, teams and tasks")
	idle := flags.Bool("idle", false, "start no process in the VMs: saves one real process for each")
	latency := flags.Duration("latency", 0, "of every answer, such as 20ms")
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	code, err := serveIncident(stagedfleet.Options{Seed: *seed, Idle: *idle, Latency: *latency}, flags.Args(), out, errOut)
	if err != nil {
		_, _ = fmt.Fprintln(errOut, "staged-incident: error:", err)
		return 1
	}
	return code
}

// serveIncident makes the fleet, and runs a command or waits for a signal.
func serveIncident(o stagedfleet.Options, command []string, out, errOut io.Writer) (code int, err error) {
	dir, err := os.MkdirTemp("", "staged-incident")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stage := &program{errOut: errOut}
	defer stage.runCleanups()
	fleet := stagedfleet.New(stage, o)
	env := fleet.Listen()
	env["SBX_STATE_DIR"] = filepath.Join(dir, "state")
	env["XDG_CONFIG_HOME"] = filepath.Join(dir, "config")
	for _, d := range []string{env["SBX_STATE_DIR"], env["XDG_CONFIG_HOME"]} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return 0, err
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // a terminal that closes, too
	defer signal.Stop(signals)
	if len(command) == 0 {
		for _, key := range slices.Sorted(maps.Keys(env)) {
			_, _ = fmt.Fprintf(out, "export %s='%s'\n", key, env[key])
		}
		_, _ = fmt.Fprintf(errOut, "%d sandboxes, %d stuck, %d that cannot be judged. Paste the lines above into another terminal and use sbx there,\n"+
			"or run one command at once: make incident CMD=\"sbx diagnose\". Ctrl-C ends.\n", len(fleet.Members),
			len(fleet.Refs(stagedfleet.Role.Stuck)), len(fleet.Refs(stagedfleet.Role.Unjudged)))
		<-signals
		return 0, nil
	}
	return runCommand(command, env, signals)
}

// runCommand runs a command in the environment of the fleet. The terminal sends SIGINT to the command,
// too.
func runCommand(command []string, env map[string]string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // set by the developer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	for key, value := range env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt {
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			if exit, failed := errors.AsType[*exec.ExitError](err); failed {
				return exit.ExitCode(), nil
			}
			return 0, err
		}
	}
}

// program replaces the test of the fakes and runs their cleanups.
type program struct {
	errOut io.Writer
	mu     sync.Mutex
	ends   []func()
}

// Helper does nothing.
func (p *program) Helper() {}

// Errorf prints an error of a fake.
func (p *program) Errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.errOut, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

// FailNow ends the program.
func (p *program) FailNow() { panic("the stage cannot be set: the reason stands above") }

// Cleanup runs f at the end.
func (p *program) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, f)
}

func (p *program) runCleanups() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
}
