//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// interrupt starts a command, waits until it listens to signals and, with -when,
// until a shell line succeeds, sends it one, and wants its exit status. What the command
// has printed so far is in the file interrupted. The last output stays as after exec:
//
//	interrupt INT 130 sbx wait REF
//	interrupt -when 'test -e up' TERM 143 sbx exec REF -- sleep 60
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	when := "sleep 0.1"
	if len(args) > 1 && args[0] == "-when" {
		when, args = args[1], args[2:]
	}
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt [-when LINE] INT|TERM CODE COMMAND...")
	}
	status(ts, false, append([]string{args[1], "sh", "-c", interrupter, "sh", args[0], when}, args[2:]...))
}

// interrupter: a shell starts background commands with SIGINT ignored, so that
// the bit of SIGINT among the caught signals shows when the command listens. Until it
// has been executed the process is a copy of the shell, which catches SIGINT, too.
const interrupter = `
sig=$1 when=$2; shift 2
"$@" >interrupted & pid=$!
listens() {
	[ "$(readlink /proc/$pid/exe)" != "$(readlink /proc/$$/exe)" ] && grep -q '^SigCgt:.*[2367abef]$' /proc/$pid/status 2>/dev/null
}
until listens && eval "$when" >/dev/null 2>&1; do
	kill -0 $pid || break
	sleep 0.02
done
kill -$sig $pid
wait $pid; code=$?
cat interrupted
exit $code
`

// crowd starts a command many times at once and wants every one of them to end
// with 0 and to print one JSON document: crowd 64 sbx ls -o json.
func crowd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: crowd N COMMAND...")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	environ := []string{}
	for _, key := range []string{"HOME", "PATH", "SBX_STATE_DIR", "XDG_CONFIG_HOME"} {
		environ = append(environ, key+"="+ts.Getenv(key))
	}
	start, failed := make(chan struct{}), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			failed[i] = one(environ, args[1:])
		})
	}
	close(start)
	all.Wait()
	for i, err := range failed {
		if err != nil {
			ts.Fatalf("number %d of %d: %v", i+1, n, err)
		}
	}
}

func one(environ, args []string) error {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s%s", err, stdout.String(), stderr.String())
	}
	var document any
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		return fmt.Errorf("no single document: %w: %s", err, stdout.String())
	}
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "sbx: creating a sandbox at ") { // a busy machine is told that it waits
			return fmt.Errorf("it said: %s", stderr.String())
		}
	}
	return nil
}

// mounted puts a small file system of its own over a folder for the rest of the
// script: mounted DIR size=1m.
func mounted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mounted DIR OPTIONS")
	}
	dir := ts.MkAbs(args[0])
	mount(ts, "-t", "tmpfs", "-o", args[1], "sbx-test", dir)
	ts.Defer(func() {
		endAll(ts.Getenv("SBX_STATE_DIR"))
		_ = exec.Command("umount", "-l", dir).Run()
	})
}

// readonly makes a folder one that nobody can write to, root neither; negated it
// takes that back.
func readonly(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] readonly DIR")
	}
	dir := ts.MkAbs(args[0])
	if neg {
		ts.Check(exec.Command("umount", dir).Run())
		return
	}
	mount(ts, "--bind", dir, dir)
	ts.Defer(func() { _ = exec.Command("umount", "-l", dir).Run() })
	mount(ts, "-o", "remount,bind,ro", dir)
}

func mount(ts *testscript.TestScript, args ...string) {
	if text, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		ts.Fatalf("mount %v: %v: %s", args, err, text)
	}
}

// mayMount tries it: the root of a container often may not.
func mayMount() bool {
	dir, err := os.MkdirTemp("", "sbx-mount")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(dir) }()
	if exec.Command("mount", "-t", "tmpfs", "sbx-test", dir).Run() != nil {
		return false
	}
	return exec.Command("umount", dir).Run() == nil
}
