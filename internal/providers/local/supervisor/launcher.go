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

// programRequest is one program to start.
type programRequest struct {
	argv  []string
	env   []string
	dir   string
	files []*os.File
	tty   bool // files[0] becomes its controlling terminal
}

// launcher starts all programs from one dedicated thread: that thread is a member of the
// sandbox's v1 cgroups and has no_new_privs, and a program inherits both at its fork, so it is
// limited from the start. It is never the first thread: the kernel charges a process's memory
// to the groups of the first thread.
type launcher struct {
	order wire.StubOrder
	place placement
	jobs  chan func()
}

func newLauncher(order wire.StubOrder) (*launcher, error) {
	l := &launcher{order: order, jobs: make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := l.place.prepareThread(order.Cgroup)
		ready <- err
		for err == nil {
			(<-l.jobs)()
		}
	}()
	return l, <-ready
}

// startOnThread starts a program and returns its PID in the stub's namespace.
func (l *launcher) startOnThread(r programRequest) (pid int, err error) {
	done := make(chan struct{})
	l.jobs <- func() {
		pid, err = l.forkProgram(r)
		close(done)
	}
	<-done
	return pid, err
}

func (l *launcher) forkProgram(r programRequest) (int, error) {
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
		Dir: r.dir, Env: r.env, Files: r.files, Sys: l.place.procAttributes(r.tty),
	})
	if err != nil {
		return 0, startFail(r.argv[0], r.dir, err)
	}
	defer process.Release() // the stub's reaper waits for it by PID
	l.place.applyLimits(process.Pid, l.order)
	return process.Pid, nil
}

// startFail classifies the reasons for a failed start like a shell: 127 for a missing
// program, 126 for one that cannot be executed.
func startFail(name, dir string, err error) *wire.Fail {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, statErr := os.Stat(dir); statErr != nil {
			return &wire.Fail{Kind: wire.FailWorkdir, Message: fmt.Sprintf("working directory %q: %v", dir, systemError(statErr))}
		}
		return &wire.Fail{Kind: wire.FailNotFound, Message: fmt.Sprintf("%q: its interpreter was not found", name)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		return &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q cannot be executed: %v", name, systemError(err))}
	}
	return &wire.Fail{Kind: wire.FailLauncher, Message: fmt.Sprintf("starting %q: %v", name, systemError(err))}
}

// systemError is the system's error without the name of the call.
func systemError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// lookPath finds a program like a shell in the sandbox: by the sandbox's PATH and relative to
// its working directory.
func lookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", &wire.Fail{Kind: wire.FailNotFound, Message: "the command is empty"}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		if err == nil {
			err = syscall.ENOTDIR
		}
		return "", &wire.Fail{Kind: wire.FailWorkdir, Message: fmt.Sprintf("working directory %q: %v", dir, systemError(err))}
	}
	if strings.Contains(name, "/") {
		return checkExecutable(name, absolutePath(name, dir))
	}
	var refused error
	for _, folder := range filepath.SplitList(envVariable(env, "PATH")) {
		file := filepath.Join(absolutePath(folder, dir), name)
		if _, err := os.Stat(file); err != nil {
			continue // also where the folder cannot be searched
		}
		path, err := checkExecutable(name, file)
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

func absolutePath(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func checkExecutable(name, path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "", &wire.Fail{Kind: wire.FailNotFound, Message: fmt.Sprintf("%q: no such file", name)}
	case err != nil:
		return "", &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q: %v", name, systemError(err))}
	case info.IsDir():
		return "", &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q is a directory", name)}
	case info.Mode()&0o111 == 0:
		return "", &wire.Fail{Kind: wire.FailNotExecutable, Message: fmt.Sprintf("%q is not executable", name)}
	}
	return path, nil
}

func envVariable(env []string, key string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, key+"="); ok {
			return value
		}
	}
	return ""
}
