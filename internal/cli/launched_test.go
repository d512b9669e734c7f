//go:build unix

package cli_test

import (
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// launchedKey is where a script keeps what it has launched.
type launchedKey struct{}

// launched is a program that runs beside the script.
type launched struct {
	cmd  *exec.Cmd
	over chan struct{} // closed at its end
	code int           // then; 128+n of one that a signal ended
}

// launchable lets a script launch programs, none of which outlives it.
func launchable(e *testscript.Env) {
	all := map[string]*launched{}
	e.Values[launchedKey{}] = all
	e.Defer(func() {
		for _, l := range all {
			_ = l.cmd.Process.Kill()
			<-l.over
		}
	})
}

// launch starts a program beside the script, with NAME.out and NAME.err for what it
// says: launch NAME COMMAND...
func launch(ts *testscript.TestScript, neg bool, args []string) {
	all, ok := ts.Value(launchedKey{}).(map[string]*launched)
	if !ok || neg || len(args) < 2 {
		ts.Fatalf("usage: launch NAME COMMAND...")
	}
	if old := all[args[0]]; old != nil {
		select {
		case <-old.over:
		default:
			ts.Fatalf("%s runs already", args[0])
		}
	}
	ts.Check(ts.Exec("env", "-0"))
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Env, cmd.Dir = strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\x00"), "\x00"), ts.MkAbs(".")
	for _, entry := range cmd.Env {
		if path, found := strings.CutPrefix(entry, "PATH="); found && !strings.Contains(args[1], "/") {
			cmd.Path = lookIn(path, args[1])
		}
	}
	cmd.Err = nil
	out, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	ts.Check(cmd.Start())
	l := &launched{cmd: cmd, over: make(chan struct{})}
	all[args[0]] = l
	go func() {
		defer close(l.over)
		l.code = codeOf(cmd.Wait())
	}()
}

func lookIn(path, name string) string {
	for dir := range strings.SplitSeq(path, ":") {
		if info, err := os.Stat(dir + "/" + name); err == nil && info.Mode()&0o111 != 0 {
			return dir + "/" + name
		}
	}
	return name
}

func codeOf(err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return exit.ExitCode()
}

// launchedOf finds what was launched by a name.
func launchedOf(ts *testscript.TestScript, name string) *launched {
	all, _ := ts.Value(launchedKey{}).(map[string]*launched)
	l := all[name]
	if l == nil {
		ts.Fatalf("nothing was launched as %s", name)
	}
	return l
}

// send sends a signal to what was launched: send INT|TERM|HUP|KILL|STOP|CONT NAME.
func send(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: send SIGNAL NAME")
	}
	sig := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}[args[0]]
	if sig == 0 {
		ts.Fatalf("%s is no signal", args[0])
	}
	ts.Check(launchedOf(ts, args[1]).cmd.Process.Signal(sig))
}

// joined waits for the end of what was launched and wants one exit status, or one of several;
// its output is stdout and stderr then: joined NAME CODE[|CODE].
func joined(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: joined NAME CODE[|CODE]")
	}
	l := launchedOf(ts, args[0])
	select {
	case <-l.over:
	case <-time.After(scriptLimit):
		ts.Fatalf("%s does not end", args[0])
	}
	said := ts.ReadFile(args[0] + ".err")
	ts.Check(ts.Exec("sh", "-c", `cat "$1.out"; cat "$1.err" >&2`, "sh", ts.MkAbs(args[0])))
	if !slices.Contains(strings.Split(args[1], "|"), strconv.Itoa(l.code)) {
		ts.Fatalf("exit status %d, want %s:\n%s", l.code, args[1], said)
	}
}

// frozen waits until what was launched is stopped by a signal.
func frozen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: frozen NAME")
	}
	l := launchedOf(ts, args[0])
	if !freezes(l.cmd.Process.Pid, l.over) {
		ts.Fatalf("%s does not freeze", args[0])
	}
}

// freezes waits until every thread of a process is stopped; false = it ends first, or
// takes too long.
func freezes(pid int, over <-chan struct{}) bool {
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		if state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
			if _, rest, ok := strings.Cut(string(state), ") "); ok && strings.HasPrefix(rest, "T") {
				return true
			}
		}
		select {
		case <-over:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}

// origin makes a bare repository with one commit on its branch main, and puts its
// path into ORIGIN: origin [NAME].
func origin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: origin [NAME]")
	}
	name := "origin"
	if len(args) == 1 {
		name = args[0]
	}
	path := ts.MkAbs(name + ".git")
	ts.Check(ts.Exec("sh", "-c", makeOrigin, "sh", path))
	ts.Setenv("ORIGIN", path)
}

const makeOrigin = `set -e
git init -q --bare -b main "$1"
tree=$(git --git-dir "$1" mktree </dev/null)
commit=$(git --git-dir "$1" -c user.name=base -c user.email=base@example.com commit-tree -m base "$tree")
git --git-dir "$1" update-ref refs/heads/main "$commit"
`

// locked takes the write lock of a database, as a process that hangs in the midst of a
// change does, until it is given back: locked FILE, ! locked FILE. That a slow machine
// takes long over what lies between changes nothing.
func locked(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] locked FILE")
	}
	file := ts.MkAbs(args[0])
	if neg {
		free, ok := locks.LoadAndDelete(file)
		give, _ := free.(func())
		if !ok {
			ts.Fatalf("%s is not locked", file)
		}
		give()
		return
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	ts.Check(err)
	tx, err := db.Begin()
	ts.Check(err)
	free := sync.OnceFunc(func() {
		_ = tx.Rollback()
		_ = db.Close()
	})
	locks.Store(file, free)
	ts.Defer(free)
}

// newer has a database look as if a newer sbx had used it; negated it takes that back: newer FILE.
func newer(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] newer FILE")
	}
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?_pragma=busy_timeout(5000)")
	ts.Check(err)
	statement := "INSERT INTO sbx_schema (version) VALUES (1000)"
	if neg {
		statement = "DELETE FROM sbx_schema WHERE version = 1000"
	}
	_, err = db.Exec(statement)
	ts.Check(err)
	ts.Check(db.Close())
}

// locks has, by the file of a database, what gives its write lock back.
var locks sync.Map
