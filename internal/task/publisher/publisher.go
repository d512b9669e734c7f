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
	"sbx/internal/providers"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// MaxBundle is how much a sandbox may give to be published, in bytes.
const MaxBundle = 2 << 30

// Options are what a Publisher works with.
type Options struct {
	Git     *publish.Git
	Dir     string // where bundles are kept, a folder a task
	Environ []string
	Workdir string // where the operator's own command runs
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	// Secret is the push target with its credentials, where the record of the task
	// may not have them.
	Secret publish.Target
	Notice func(text string)
}

// Publisher is task.Publisher.
type Publisher struct{ o Options }

var _ task.Publisher = (*Publisher)(nil)

// New makes a Publisher.
func New(o Options) *Publisher { return &Publisher{o} }

// Remote says that a late publisher is held back by the remote itself.
func (p *Publisher) Remote(t task.Task) bool { return t.Spec.Push != "" }

// target is where the task's work is pushed to.
func (p *Publisher) target(t task.Task) (publish.Target, error) {
	if p.o.Secret.Branch != "" && p.o.Secret.String() == t.Spec.Push {
		return p.o.Secret, nil
	}
	return publish.ParseTarget(t.Spec.Push)
}

// Prepare asks the remote what the branch is at. Before the first attempt it also has
// the remote hold a fence for a moment: a host that would not is found before an agent
// has worked for an hour.
func (p *Publisher) Prepare(ctx context.Context, t task.Task) (string, error) {
	if !p.Remote(t) {
		return "", nil
	}
	target, err := p.target(t)
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

// folder is what is kept on this host for a task.
func (p *Publisher) folder(t task.Task) string { return filepath.Join(p.o.Dir, t.ID) }

const bundleName = "bundle"

// bundle is where the work of the task's last attempt lies; each attempt has its own.
func (p *Publisher) bundle(t task.Task) string {
	name := bundleName
	if n := len(t.Attempts); n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return filepath.Join(p.folder(t), name)
}

// Saved says that this host has the whole work of the task's last attempt.
func (p *Publisher) Saved(t task.Task) bool {
	_, err := publish.CheckBundle(p.bundle(t))
	return err == nil
}

// Collect has git inside the sandbox write its new commits into a bundle here. A
// command of the operator's own needs none: where there is no repository it goes
// without.
func (p *Publisher) Collect(ctx context.Context, t task.Task, run task.Exec) (bool, error) {
	if err := os.MkdirAll(p.folder(t), 0o700); err != nil {
		return false, fault.New(fault.KindUnknown, "no room for what is to be published: %w", err)
	}
	if err := os.Remove(p.bundle(t)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, fault.New(fault.KindUnknown, "an earlier bundle is in the way: %w", err)
	}
	code, said, err := p.fetch(ctx, t, run)
	switch {
	case err != nil:
		return false, err
	case code == 0:
		_, err := publish.CheckBundle(p.bundle(t))
		return err == nil, err
	}
	_ = os.Remove(p.bundle(t)) // what a failed collect has left is no bundle
	bare := code == publish.CollectNoGit || code == publish.CollectNoRepository || code == publish.CollectNoCommit
	switch {
	case t.Spec.Push == "" && (bare || code == publish.CollectNothing):
		return true, nil
	case code == publish.CollectNothing:
		return false, nil
	}
	why := publish.CollectMeaning(code)
	if why == "" {
		why = "the collecting command in the sandbox failed: " + said
	}
	return false, fault.New(fault.KindRefused, "%s", why).WithHint("the work directory of the sandbox (--workdir) has to be a git repository with the commits in it")
}

// fetch runs the collecting command and keeps what it prints.
func (p *Publisher) fetch(ctx context.Context, t task.Task, run task.Exec) (code int, said string, err error) {
	file, err := publish.NewLimitFile(p.bundle(t), MaxBundle)
	if err != nil {
		return 0, "", err
	}
	var errs bytes.Buffer
	text := publish.NewDecoder(file)
	exit, err := run(ctx, providers.Command{Args: publish.CollectText(t.Spec.Base), Stdout: text, Stderr: &head{w: &errs}})
	decoded := text.Close()
	if closed := file.Close(); err == nil {
		err = cmp.Or(closed, decoded)
	}
	said = strings.TrimSpace(errs.String())
	switch {
	case err != nil:
		return 0, said, err
	case exit.Code == nil:
		return 0, said, fault.New(fault.KindUnavailable, "nobody saw how the collecting command ended")
	}
	if said != "" && *exit.Code == 0 && p.o.Notice != nil {
		p.o.Notice(said)
	}
	return *exit.Code, said, nil
}

// head keeps the first 4 KiB of what a sandbox says.
type head struct{ w *bytes.Buffer }

func (h *head) Write(b []byte) (int, error) {
	if room := 4096 - h.w.Len(); room > 0 {
		h.w.Write(b[:min(len(b), room)])
	}
	return len(b), nil
}

// Publish pushes, or runs the operator's command. Once a push was cut, it may still
// arrive whatever a later try meets: only a stop that the remote holds refuses it then.
func (p *Publisher) Publish(ctx context.Context, t task.Task) (task.Publish, error) {
	if !p.Remote(t) {
		return p.perform(ctx, t)
	}
	target, err := p.target(t)
	if err != nil {
		return refused(err), nil
	}
	push := publish.Push{Task: t.ID, Fence: t.Fence, Target: target, Bundle: p.bundle(t), Base: t.Publish.Base}
	doubt := false
	for try := 1; ; try++ {
		done, err := p.o.Git.Publish(ctx, push)
		doubt = doubt || errors.Is(err, publish.ErrInDoubt)
		again := fault.KindOf(err) == fault.KindUnavailable
		switch {
		case err == nil:
			return task.Publish{State: task.PublishDone, Commit: done.Commit}, nil
		case errors.Is(err, publish.ErrTorn):
			return task.Publish{State: task.PublishUnknown, Message: err.Error()}, nil
		case errors.Is(err, publish.ErrStopped), !again && !doubt && ctx.Err() == nil:
			return refused(err), nil
		case !again || try == pushTries || !pause(ctx, time.Duration(try)*pushPause):
			return task.Publish{State: task.PublishBegun}, err // what became of it is for Resolve to say
		}
	}
}

// How often a remote that does not answer is asked again: a second push of the same
// task changes nothing where the first arrived.
const (
	pushTries = 4
	pushPause = 2 * time.Second
)

// pause waits; false = ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func refused(err error) task.Publish {
	return task.Publish{State: task.PublishRefused, Message: err.Error()}
}

// keepRefused is how long work lies here that was done, and that its target has
// refused: its sandbox is gone, so this may be the last copy of it.
const keepRefused = 7 * 24 * time.Hour

// Forget drops the bundle of a task that is over, unless its target has refused the
// work, and what has lain here for keepRefused.
func (p *Publisher) Forget(t task.Task) {
	if _, err := os.Stat(p.bundle(t)); err == nil && t.State == task.Failed && t.Publish.State == task.PublishRefused {
		if p.o.Notice != nil {
			p.o.Notice("the work of task " + t.ID + " is kept for 7 days: git fetch " + p.bundle(t) + " HEAD")
		}
	} else {
		drop(p.folder(t))
	}
	folders, _ := os.ReadDir(p.o.Dir) // without any there is nothing to drop
	for _, f := range folders {
		folder := filepath.Join(p.o.Dir, f.Name())
		for _, bundle := range bundles(folder) {
			if info, err := os.Stat(bundle); err == nil && p.o.Now().Sub(info.ModTime()) > keepRefused {
				drop(folder)
			}
		}
	}
}

// bundles are those of all attempts of a task.
func bundles(folder string) []string {
	all, _ := filepath.Glob(filepath.Join(folder, bundleName+"*")) // the pattern is a good one
	return all
}

// drop removes the bundles of a task and their folder, and nothing else that somebody
// put there.
func drop(folder string) {
	for _, bundle := range bundles(folder) {
		_ = os.Remove(bundle) // what cannot be removed costs room and nothing else
	}
	_ = os.Remove(folder)
}

// perform runs the operator's command, whose word, its exit code, is all there is.
func (p *Publisher) perform(ctx context.Context, t task.Task) (task.Publish, error) {
	c := publish.Command{
		Line: t.Spec.Publish, Task: t.ID, Fence: t.Fence, Dir: p.o.Workdir, Env: p.o.Environ, Stdout: p.o.Stdout, Stderr: p.o.Stderr,
	}
	if _, err := os.Stat(p.bundle(t)); err == nil {
		c.Bundle = p.bundle(t)
	}
	exit, err := c.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return task.Publish{State: task.PublishBegun}, err // it was cut short: what it had done by then nobody knows
	case exit.Code == nil:
		return refused(fmt.Errorf("its command could not be run: %w", err)), nil
	case *exit.Code != 0:
		return refused(errors.New("its command failed: " + words(exit))), nil
	}
	return task.Publish{State: task.PublishDone}, nil
}

func words(e sandbox.Exit) string {
	if e.Signal != "" {
		return e.Signal
	}
	return "exit " + e.Raw
}

// Resolve asks the remote what became of a push, and holds back what has not come
// yet. Of a command nobody can tell.
func (p *Publisher) Resolve(ctx context.Context, t task.Task, by string) (task.Publish, error) {
	if !p.Remote(t) {
		return task.Publish{State: task.PublishUnknown, Message: "its command was begun, and who saw its end is gone"}, nil
	}
	target, err := p.target(t)
	if err != nil {
		return task.Publish{}, err
	}
	mark, err := p.o.Git.Poison(ctx, t.ID, target, by, p.o.Now())
	if err != nil {
		return task.Publish{}, err
	}
	if mark.Verdict == publish.Published {
		return task.Publish{State: task.PublishDone, Commit: mark.Commit}, nil
	}
	return task.Publish{State: task.PublishRefused, Message: "it was held back at the remote by " + mark.By}, nil
}
