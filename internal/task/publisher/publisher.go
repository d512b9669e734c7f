// Package publisher publishes a task's work: by git to a remote with a fence, or by the
// operator's own command on this host. It implements task.Publisher with the package
// publish, and keeps bundles in the state directory.
//
// It decides nothing about tasks: the package task decides when the gate is passed.
package publisher

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/publish"
	"sbx/internal/task"
)

// MaxBundle bounds the bundle of a sandbox, in bytes.
const MaxBundle = 2 << 30

// Options configure a Publisher.
type Options struct {
	Git     *publish.Git
	Dir     string // for bundles, with a folder per task
	Environ []string
	Workdir string // of the operator's own command
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	// Secret is the push target with its credentials, which may be missing in the record of
	// the task.
	Secret publish.Target
	Notice func(text string)
}

// Publisher implements task.Publisher.
type Publisher struct{ o Options }

var _ task.Publisher = (*Publisher)(nil)

// New makes a Publisher.
func New(o Options) *Publisher { return &Publisher{o} }

// PushesToGit is task.RemoteTarget's.
func (p *Publisher) PushesToGit(t task.Task) bool { return t.Spec.Push != "" }

func (p *Publisher) pushTarget(t task.Task) (publish.Target, error) {
	if p.o.Secret.Branch != "" && p.o.Secret.String() == t.Spec.Push {
		return p.o.Secret, nil
	}
	return publish.ParseTarget(t.Spec.Push)
}

// Prepare reads the commit of the branch. Before the first attempt it also tests a fence at
// the remote, so that a host without support is found before an agent has worked for an
// hour.
func (p *Publisher) Prepare(ctx context.Context, t task.Task) (string, error) {
	if !p.PushesToGit(t) {
		return "", nil
	}
	target, err := p.pushTarget(t)
	if err != nil {
		return "", err
	}
	if len(t.Attempts) == 0 {
		if err := p.o.Git.Probe(ctx, target); err != nil {
			return "", err
		}
	}
	return p.o.Git.Base(ctx, target)
}

func (p *Publisher) taskFolder(t task.Task) string { return filepath.Join(p.o.Dir, t.ID) }

const bundleName = "bundle"

// bundlePath is the bundle of the task's last attempt; each attempt has its own.
func (p *Publisher) bundlePath(t task.Task) string {
	name := bundleName
	if n := len(t.Attempts); n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return filepath.Join(p.taskFolder(t), name)
}

// Saved reports whether this host has the whole work of the task's last attempt.
func (p *Publisher) Saved(t task.Task) bool {
	_, err := publish.CheckBundle(p.bundlePath(t))
	return err == nil
}

// Collect makes git inside the sandbox write its new commits into a bundle here. The operator's
// own command needs none: it may publish something else than commits.
func (p *Publisher) Collect(ctx context.Context, t task.Task, run task.Exec) (task.Collected, error) {
	if err := p.prepareFolder(t); err != nil {
		return task.NothingToPublish, err
	}
	code, said, err := p.fetchBundle(ctx, t, run)
	if err != nil {
		return task.NothingToPublish, err
	}
	if code == 0 {
		_, err := publish.CheckBundle(p.bundlePath(t))
		return task.Collected(err == nil), err
	}
	_ = os.Remove(p.bundlePath(t)) // a failed collect leaves no valid bundle
	switch code {
	case publish.CollectNothing:
		return task.Collected(!p.PushesToGit(t)), nil
	case publish.CollectNoGit, publish.CollectNoRepository, publish.CollectNoCommit:
		if !p.PushesToGit(t) {
			return task.WorkToPublish, nil
		}
	}
	why := publish.CollectMeaning(code)
	if why == "" {
		why = "the collecting command in the sandbox failed: " + said
	}
	return task.NothingToPublish, fault.New(fault.KindRefused, "%s", why).
		WithHint("the work directory of the sandbox (--workdir) must be a git repository with the commits")
}

// prepareFolder makes the folder of a task, without an earlier bundle of the same attempt.
func (p *Publisher) prepareFolder(t task.Task) error {
	if err := os.MkdirAll(p.taskFolder(t), 0o700); err != nil {
		return fault.New(fault.KindUnknown, "no space for the bundle: %w", err)
	}
	if err := os.Remove(p.bundlePath(t)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.KindUnknown, "an earlier bundle is in the way: %w", err)
	}
	return nil
}

// fetchBundle runs the collecting command and stores what it prints as the bundle. Said is its stderr.
func (p *Publisher) fetchBundle(ctx context.Context, t task.Task, run task.Exec) (code int, said string, err error) {
	file, err := publish.NewLimitFile(p.bundlePath(t), MaxBundle)
	if err != nil {
		return 0, "", err
	}
	var errs bytes.Buffer
	decoder := publish.NewDecoder(file)
	base := t.Spec.Base
	if t.Branch != nil {
		base = t.Branch.Commit // the remote has all commits up to this one
	}
	exit, err := run(ctx, providers.Command{Args: publish.CollectText(base), Stdout: decoder, Stderr: &cappedWriter{w: &errs}})
	errDecode, errClose := decoder.Close(), file.Close()
	if err == nil {
		err = cmp.Or(errClose, errDecode)
	}
	said = strings.TrimSpace(errs.String())
	switch {
	case err != nil:
		return 0, said, err
	case exit.Code == nil:
		return 0, said, fault.New(fault.KindUnavailable, "how the collecting command ended is unknown")
	}
	if said != "" && *exit.Code == 0 && p.o.Notice != nil {
		p.o.Notice(said)
	}
	return *exit.Code, said, nil
}

// cappedWriter keeps the first 4 KiB of a sandbox's output.
type cappedWriter struct{ w *bytes.Buffer }

func (h *cappedWriter) Write(b []byte) (int, error) {
	if room := 4096 - h.w.Len(); room > 0 {
		h.w.Write(b[:min(len(b), room)])
	}
	return len(b), nil
}

// Publish pushes, or runs the operator's command. A push whose answer was lost may still arrive,
// even after a later try failed: only the remote can prevent that, as Resolve asks it to.
func (p *Publisher) Publish(ctx context.Context, t task.Task) (task.Publish, error) {
	if !p.PushesToGit(t) {
		return p.runCommand(ctx, t)
	}
	target, err := p.pushTarget(t)
	if err != nil {
		return refusedResult(err), nil
	}
	push := publish.Push{Task: t.ID, Fence: t.Fence, Target: target, Bundle: p.bundlePath(t), Base: t.Publish.Base}
	mayArrive := false
	for try := 1; ; try++ {
		done, err := p.o.Git.Publish(ctx, push)
		mayArrive = mayArrive || errors.Is(err, publish.ErrInDoubt)
		retryable := fault.KindOf(err) == fault.KindUnavailable
		switch {
		case err == nil:
			return task.Publish{State: task.PublishDone, Commit: done.Commit}, nil
		case errors.Is(err, publish.ErrNotAtomic):
			return task.Publish{State: task.PublishUnknown, Message: err.Error()}, nil
		case errors.Is(err, publish.ErrStopped), !retryable && !mayArrive && ctx.Err() == nil:
			return refusedResult(err), nil
		case !retryable || try == pushTries || poll.Sleep(ctx, time.Duration(try)*pushPause) != nil:
			return task.Publish{State: task.PublishBegun}, err // Resolve finds out the result
		}
	}
}

// How often a push to a remote that does not answer is repeated. A second push of the same
// task changes nothing where the first arrived.
const (
	pushTries = 4
	pushPause = 2 * time.Second
)

func refusedResult(err error) task.Publish {
	return task.Publish{State: task.PublishRefused, Message: err.Error()}
}

// keepRefused is how long work stays here that its target has refused: its sandbox is gone,
// so this may be the last copy.
const keepRefused = 7 * 24 * time.Hour

// Forget removes the bundle of a task that is over, unless its target has refused the work,
// and bundles older than keepRefused.
func (p *Publisher) Forget(t task.Task) {
	if _, err := os.Stat(p.bundlePath(t)); err == nil && t.State == task.Failed && t.Publish.State == task.PublishRefused {
		if p.o.Notice != nil {
			p.o.Notice("the work of task " + t.ID + " is kept for 7 days: git fetch " + p.bundlePath(t) + " HEAD")
		}
	} else {
		removeBundles(p.taskFolder(t))
	}
	folders, _ := os.ReadDir(p.o.Dir) // without the folder there is nothing to remove
	for _, f := range folders {
		folder := filepath.Join(p.o.Dir, f.Name())
		for _, bundle := range bundlePaths(folder) {
			if info, err := os.Stat(bundle); err == nil && p.o.Now().Sub(info.ModTime()) > keepRefused {
				removeBundles(folder)
			}
		}
	}
}

func bundlePaths(folder string) []string {
	all, _ := filepath.Glob(filepath.Join(folder, bundleName+"*")) // the pattern is valid
	return all
}

// removeBundles removes the bundles of a task and their folder, but no other files in it.
func removeBundles(folder string) {
	for _, bundle := range bundlePaths(folder) {
		_ = os.Remove(bundle) // a bundle that cannot be removed only takes space
	}
	_ = os.Remove(folder)
}

// runCommand runs the operator's command. Its exit code is the only evidence.
func (p *Publisher) runCommand(ctx context.Context, t task.Task) (task.Publish, error) {
	c := publish.Command{
		Line: t.Spec.Publish, Task: t.ID, Fence: t.Fence, Dir: p.o.Workdir, Env: p.o.Environ, Stdout: p.o.Stdout, Stderr: p.o.Stderr,
	}
	if _, err := os.Stat(p.bundlePath(t)); err == nil {
		c.Bundle = p.bundlePath(t)
	}
	exit, err := c.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return task.Publish{State: task.PublishBegun}, err // it was cut short: its effect is unknown
	case exit.Code == nil:
		return refusedResult(fmt.Errorf("its command could not be run: %w", err)), nil
	case *exit.Code != 0:
		return refusedResult(errors.New("its command failed: " + cmp.Or(exit.Signal, "exit "+exit.Raw))), nil
	}
	return task.Publish{State: task.PublishDone}, nil
}

// Resolve asks the remote for the result of a push, and prevents one that has not arrived.
// The result of a command cannot be found out.
func (p *Publisher) Resolve(ctx context.Context, t task.Task, by string) (task.Publish, error) {
	if !p.PushesToGit(t) {
		return task.Publish{State: task.PublishUnknown, Message: "its command was started, and the process that watched it died"}, nil
	}
	target, err := p.pushTarget(t)
	if err != nil {
		return task.Publish{}, err
	}
	mark, err := p.o.Git.ForbidPublish(ctx, t.ID, target, by, p.o.Now())
	if err != nil {
		return task.Publish{}, err
	}
	if mark.Verdict == publish.Published {
		return task.Publish{State: task.PublishDone, Commit: mark.Commit}, nil
	}
	return task.Publish{State: task.PublishRefused, Message: "it was blocked at the remote by " + mark.By}, nil
}
