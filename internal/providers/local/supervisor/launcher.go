//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"sbx/internal/providers/local/wire"
)

// request is one program to start.
type request struct {
	argv  []string
	env   []string
	dir   string
	files []*os.File
	tty   bool // files[0] is to become its controlling terminal
}

// launcher starts programs from one thread of its own, for good: that thread
// is a member of the sandbox's v1 cgroups and has no_new_privs, and a program
// inherits both at its fork, so it is inside its limits from its first byte.
// It is never the first thread: the kernel charges a process's memory to the
// groups of that one.
type launcher struct {
	order wire.StubOrder
	place placement
	jobs  chan job
}

type job struct {
	request request
	done    chan<- result
}

type result struct {
	pid int
	err error
}

func newLauncher(order wire.StubOrder) (*launcher, error) {
	l := &launcher{order: order, jobs: make(chan job)}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := l.place.enter(order.Cgroup)
		ready <- err
		for err == nil {
			j := <-l.jobs
			pid, startErr := l.fork(j.request)
			j.done <- result{pid, startErr}
		}
	}()
	return l, <-ready
}

// start starts a program and returns its PID as the stub counts.
func (l *launcher) start(r request) (int, error) {
	done := make(chan result, 1)
	l.jobs <- job{r, done}
	got := <-done
	return got.pid, got.err
}

func (l *launcher) fork(r request) (int, error) {
	path, err := lookPath(r.argv[0], r.dir, r.env)
	if err != nil {
		return 0, err
	}
	argv := r.argv
	if len(l.order.Wrap) > 0 {
		argv = slices.Concat(l.order.Wrap, []string{path}, r.argv[1:])
		path = l.order.Wrap[0]
	}
	process, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir: r.dir, Env: r.env, Files: r.files, Sys: l.place.attributes(r.tty),
	})
	if err != nil {
		return 0, startFail(r.argv[0], r.dir, err)
	}
	defer process.Release() // the stub's reaper waits for it by number
	l.place.settle(process.Pid, l.order)
	return process.Pid, nil
}

// startFail sorts the reasons for which a program cannot be started, the way a
// shell does: 127 for one that is not there, 126 for one that cannot run.
func startFail(name, dir string, err error) *wire.Fail {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, statErr := os.Stat(dir); statErr != nil {
			return &wire.Fail{Kind: wire.FailWorkdir, Message: fmt.Sprintf("working directory %q: %v", dir, cause(statErr))}
		}
		return &wire.Fail{Kind: wire.FailNotFound, Message: fmt.Sprintf("%q: its interpreter was not found", name)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		return &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q cannot be executed: %v", name, cause(err))}
	}
	return &wire.Fail{Kind: wire.FailLauncher, Message: fmt.Sprintf("starting %q: %v", name, cause(err))}
}

// cause is the system's own word, without the name of the call.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// lookPath finds a program as a shell in the sandbox would: by the sandbox's
// PATH and from its working directory.
func lookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", &wire.Fail{Kind: wire.FailNotFound, Message: "the command is empty"}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		if err == nil {
			err = syscall.ENOTDIR
		}
		return "", &wire.Fail{Kind: wire.FailWorkdir, Message: fmt.Sprintf("working directory %q: %v", dir, cause(err))}
	}
	if strings.Contains(name, "/") {
		return check(name, absolute(name, dir))
	}
	var refused error
	for _, folder := range filepath.SplitList(variable(env, "PATH")) {
		file := filepath.Join(absolute(folder, dir), name)
		if _, err := os.Stat(file); err != nil {
			continue // a folder that cannot be searched has no program to offer
		}
		path, err := check(name, file)
		if err == nil {
			return path, nil
		}
		if kind := wire.AsFail(err).Kind; kind == wire.FailNotExecutable && refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", &wire.Fail{Kind: wire.FailNotFound, Message: fmt.Sprintf("%q: not found in the sandbox's PATH", name)}
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func check(name, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", &wire.Fail{Kind: wire.FailNotFound, Message: fmt.Sprintf("%q: no such file", name)}
	case err != nil:
		return "", &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q: %v", name, cause(err))}
	case info.IsDir():
		return "", &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q is a directory", name)}
	case info.Mode()&0o111 == 0:
		return "", &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q is not executable", name)}
	}
	return path, nil
}

func variable(env []string, key string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, key+"="); ok {
			return value
		}
	}
	return ""
}
