//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/itchyny/gojq"
	"github.com/rogpeppe/go-internal/testscript"

	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/record"
)

// verbs are what scripts can do beside running programs.
func verbs() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"status": status, "jq": jq, "ref": ref, "signal": signalTo, "until": until, "noprocess": noProcess,
		"interrupt": interrupt, "crowd": crowd, "remote": remote, "staged": staged, "mounted": mounted, "readonly": readonly,
		"launch": launch, "send": send, "joined": joined, "frozen": frozen, "origin": origin, "locked": locked, "newer": newer, "hook": hook,
	}
}

// status runs a command and wants one exit status: status 3 sbx ls.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Exec returns it bare
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// jq wants an expression over a JSON document (stdout, stderr or a file) to be
// true; the document must be the only one: jq stdout '.items | length == 2'.
// With -s all documents of the file are one array, as for ndjson.
func jq(ts *testscript.TestScript, neg bool, args []string) {
	slurp := len(args) > 0 && args[0] == "-s"
	if slurp {
		args = args[1:]
	}
	if len(args) != 2 {
		ts.Fatalf("usage: jq [-s] FILE EXPRESSION")
	}
	text := ts.ReadFile(args[0])
	documents := []any{}
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			ts.Fatalf("%s is no JSON document: %v", args[0], err)
		}
		documents = append(documents, document)
	}
	var input any = documents
	if !slurp {
		if len(documents) != 1 {
			ts.Fatalf("%s holds %d documents, not one", args[0], len(documents))
		}
		input = documents[0]
	}
	query, err := gojq.Parse(args[1])
	ts.Check(err)
	got, _ := query.Run(input).Next()
	if failed, ok := got.(error); ok {
		ts.Fatalf("%s: %v for:\n%s", args[1], failed, text)
	}
	if (got == true) == neg {
		ts.Fatalf("%s is %v for:\n%s", args[1], got, text)
	}
}

// ref keeps the reference that the last command printed as $REF and its id as $ID.
func ref(ts *testscript.TestScript, neg bool, args []string) {
	name := "REF"
	if len(args) == 1 {
		name = args[0]
	}
	word := strings.TrimSpace(ts.ReadFile("stdout"))
	_, id, ok := strings.Cut(word, "/")
	if neg || !ok || strings.ContainsAny(word, " \n") {
		ts.Fatalf("stdout is no reference: %q", word)
	}
	ts.Setenv(name, word)
	ts.Setenv(strings.TrimSuffix(name, "REF")+"ID", id)
}

// signalTo sends a signal to a process of a sandbox, which its record names:
// signal -9 supervisor ID. (The name kill belongs to background commands.)
func signalTo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: signal -9|-STOP|-TERM supervisor|stub|program ID")
	}
	store := record.Store{Root: ts.Getenv("SBX_STATE_DIR") + "/local"}
	r, err := store.Read(args[2])
	ts.Check(err)
	sig := map[string]syscall.Signal{"-9": syscall.SIGKILL, "-STOP": syscall.SIGSTOP, "-TERM": syscall.SIGTERM}[args[0]]
	pid := map[string]int{"supervisor": r.Supervisor.PID, "stub": r.Stub.PID, "program": r.Program.PID}[args[1]]
	if pid <= 1 || sig == 0 {
		ts.Fatalf("no %s of %s is known", args[1], args[2])
	}
	ts.Check(syscall.Kill(pid, sig))
	// The kernel takes the threads of a process down one by one; its lock goes
	// with the last, when /proc shows nothing of it any more.
	for deadline := time.Now().Add(scriptLimit); sig == syscall.SIGKILL && args[1] == "supervisor"; {
		held, err := store.Held(args[2])
		ts.Check(err)
		if !held {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the supervisor of %s does not die", args[2])
		}
		<-time.After(time.Millisecond)
	}
}

// scriptLimit is how long a script waits for a state before it is red.
const scriptLimit = 8 * time.Minute

// looks are the pauses between looks at a state: each look starts a program or reads all of /proc.
func looks() *poll.Backoff { return poll.NewBackoff(50*time.Millisecond, 300*time.Millisecond) }

// until repeats a program until it succeeds: until test -e up.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until COMMAND...")
	}
	deadline, pauses := time.Now().Add(scriptLimit), looks()
	for ts.Exec(args[0], args[1:]...) != nil {
		if time.Now().After(deadline) {
			ts.Fatalf("%s did not come true", strings.Join(args, " "))
		}
		<-pauses.After()
	}
}

// noProcess wants no process of this script's sandboxes to be left.
func noProcess(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: noprocess")
	}
	deadline, pauses := time.Now().Add(scriptLimit), looks()
	for {
		left := processesOf(ts.Getenv("SBX_STATE_DIR"))
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still running: %v", left)
		}
		<-pauses.After()
	}
}

// processesOf finds the processes of a state folder's sandboxes: programs by the
// HOME that they were given, supervisors by the lock that they hold.
func processesOf(state string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	own, _ := os.ReadFile("/proc/self/cmdline")
	var found []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || (!strings.Contains(string(env), "HOME="+state+"/") && !holds("/proc/"+e.Name()+"/fd", state)) {
			continue
		}
		cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if bytes.Equal(cmdline, own) { // a child of a test beside this one, before its program is loaded
			continue
		}
		found = append(found, e.Name()+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
	}
	return found
}

// holds says whether a process has a file below a folder open.
func holds(descriptors, folder string) bool {
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if path, err := os.Readlink(descriptors + "/" + e.Name()); err == nil && strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

// endAll ends every sandbox of a state folder.
func endAll(state string) {
	folders, err := os.ReadDir(state)
	if err != nil {
		return // nothing was created
	}
	for _, profile := range folders { // one for each local profile, among others
		if profile.IsDir() {
			endProfile(state, profile.Name())
		}
	}
}

// endProfile ends the sandboxes of one local profile.
func endProfile(state, profile string) {
	kind := local.Type()
	p := providers.Profile{Name: profile, Type: kind.Name, Settings: map[string]string{}}
	for _, o := range kind.Options {
		p.Settings[o.Name] = o.Default
	}
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	opened, err := kind.Open(ctx, p, providers.Deps{
		Now: time.Now, StateDir: state, Version: "test", Notice: func(string) {}, Lookup: os.LookupEnv,
	})
	if err != nil {
		return
	}
	if sweeper, ok := providers.As[providers.Sweeper](opened); ok {
		_, _ = sweeper.Sweep(ctx)
	}
	for s, err := range opened.List(ctx, providers.Query{All: true}) {
		if err == nil && !s.State.Ended() {
			_ = opened.Terminate(ctx, s.ID, providers.TerminateOptions{By: "test cleanup"})
		}
	}
}

// hardLimits says whether this machine can hold a hard memory limit.
func hardLimits() bool {
	host, err := cgroup.Detect(cgroup.Roots{Proc: "/proc"}, 0)
	if err != nil {
		return false
	}
	for _, p := range host.Possible() {
		if p.OK {
			return true
		}
	}
	return false
}
