package publisher_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/task/publisher"
	"sbx/internal/testkit/tiertest"
)

// desk is a remote, a work directory of a sandbox, and a publisher.
type desk struct {
	t            *testing.T
	remote, work string
	dir          string
	said         strings.Builder
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	root := t.TempDir()
	d := &desk{t: t, remote: filepath.Join(root, "remote.git"), work: filepath.Join(root, "work"), dir: filepath.Join(root, "state")}
	d.git(root, "init", "-q", "--bare", d.remote)
	d.git(root, "init", "-q", "-b", "main", d.work)
	return d
}

func (d *desk) git(dir string, args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@x", "GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@x")
	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, string(out))
	return strings.TrimSpace(string(out))
}

func (d *desk) commit(text string) string {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(filepath.Join(d.work, "file"), []byte(text), 0o600))
	d.git(d.work, "add", ".")
	d.git(d.work, "commit", "-q", "-m", text)
	return d.git(d.work, "rev-parse", "HEAD")
}

func (d *desk) publisher() *publisher.Publisher { return publisher.New(d.options()) }

func (d *desk) options() publisher.Options {
	return publisher.Options{
		Git: &publish.Git{Environ: os.Environ(), Now: time.Now, Limit: time.Minute}, Dir: d.dir, Environ: os.Environ(), Workdir: d.work,
		Stdout: &d.said, Stderr: &d.said, Now: time.Now, Notice: func(text string) { d.said.WriteString(text) },
	}
}

func (d *desk) task(spec task.Spec) task.Task {
	return task.Task{ID: "t-abcdefghijkl", Fence: 3, Spec: spec, Attempts: []task.Attempt{{N: 1}}}
}

func (d *desk) push(base string) task.Task {
	return d.task(task.Spec{Push: d.remote + "=agent/fix", Base: base})
}

// inside runs a command as the sandbox would.
func (d *desk) inside(dir string) task.Exec {
	return func(ctx context.Context, c providers.Command) (sandbox.Exit, error) {
		cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, c.Stdout, c.Stderr
		err := cmd.Run()
		code := 0
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			code, err = failed.ExitCode(), nil
		}
		return sandbox.Exit{Code: &code}, err
	}
}

func (d *desk) branch() string {
	d.t.Helper()
	return d.git(d.remote, "for-each-ref", "--format=%(objectname)", "refs/heads/agent/fix")
}

func TestWhatASandboxMadeIsPushedOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want := d.commit("one")
	p, work := d.publisher(), d.push("")
	base, err := p.Prepare(t.Context(), work)
	require.NoError(t, err)
	assert.Empty(t, base)
	found, err := p.Collect(t.Context(), work, d.inside(d.work))
	require.NoError(t, err)
	require.Equal(t, task.WorkToPublish, found)
	assert.Empty(t, d.branch(), "nothing is public before the gate")
	done, err := p.Publish(t.Context(), work)
	require.NoError(t, err)
	assert.Equal(t, task.PublishDone, done.State)
	assert.Equal(t, want, done.Commit)
	assert.Equal(t, want, d.branch())
	again, err := p.Resolve(t.Context(), work, "somebody")
	require.NoError(t, err)
	assert.Equal(t, task.PublishDone, again.State, "who comes later sees that it was done")
}

func TestWhoIsHeldBackPublishesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit("one")
	p, work := d.publisher(), d.push("")
	found, err := p.Collect(t.Context(), work, d.inside(d.work))
	require.NoError(t, err)
	require.Equal(t, task.WorkToPublish, found)
	held, err := p.Resolve(t.Context(), work, "a stop")
	require.NoError(t, err)
	assert.Equal(t, task.PublishRefused, held.State)
	late, err := p.Publish(t.Context(), work)
	require.NoError(t, err)
	assert.Equal(t, task.PublishRefused, late.State)
	assert.Empty(t, d.branch())
}

// Collected work stays until the task is over, whatever its result, and no longer.
func TestWhatWasCollectedIsForgotten(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit("one")
	p := d.publisher()
	for name, work := range map[string]task.Task{"pushed": d.push(""), "refused": d.push(""), "not published": d.push(""), "handed over": d.task(task.Spec{Publish: "exit 1"})} {
		work.ID = "t-" + strings.ReplaceAll(name, " ", "-")
		found, err := p.Collect(t.Context(), work, d.inside(d.work))
		require.NoError(t, err)
		require.Equal(t, task.WorkToPublish, found)
		if name == "refused" {
			_, err = p.Resolve(t.Context(), work, "a stop")
			require.NoError(t, err)
		}
		if name != "not published" {
			_, err = p.Publish(t.Context(), work)
			require.NoError(t, err)
		}
		assert.FileExists(t, filepath.Join(d.dir, work.ID, "bundle"))
		p.Forget(work)
		p.Forget(work)
		assert.NoDirExists(t, filepath.Join(d.dir, work.ID), name)
	}
	left, err := os.ReadDir(d.dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// Refused work may be the last copy of hours of work.
func TestWorkThatWasRefusedIsKeptForAWhile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit("one")
	p := d.publisher()
	work := d.push("")
	_, err := p.Collect(t.Context(), work, d.inside(d.work))
	require.NoError(t, err)
	work.State, work.Publish.State = task.Failed, task.PublishRefused
	p.Forget(work)
	kept := filepath.Join(d.dir, work.ID, "bundle")
	require.FileExists(t, kept)
	old := time.Now().Add(-8 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(kept, old, old))
	other := work
	other.ID = "t-other"
	p.Forget(other)
	assert.NoDirExists(t, filepath.Join(d.dir, work.ID))
}

// cutting makes the publisher's git kill itself at each push, after a shell line.
func (d *desk) cutting(line string) (g *publish.Git, cut string) {
	d.t.Helper()
	dir := d.t.TempDir()
	g = &publish.Git{Program: filepath.Join(dir, "git"), Environ: os.Environ(), Dir: filepath.Join(dir, "scratch"), Now: time.Now, Limit: time.Minute}
	require.NoError(d.t, os.Mkdir(g.Dir, 0o700))
	cut = filepath.Join(dir, "cut")
	script := "#!/bin/sh\nd='" + dir + "'\ncase \" $* \" in\n*' push '*) >$d/cut; " + line + "; kill -KILL $$;;\n" +
		"*' ls-remote '*) if [ -e $d/auth ]; then echo 'fatal: Authentication failed' >&2; exit 128; fi;;\nesac\nexec git \"$@\"\n"
	require.NoError(d.t, writeProgram(g.Program, script))
	return g, cut
}

// A cut push may arrive after all: the failure of a later try proves nothing.
func TestDoubtOutlastsWhatALaterTryMeets(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"the credentials have ended":  ">$d/auth",
		"git is gone":                 "rm $d/git",
		"there is no scratch folder":  "rm -r $d/scratch",
		"what was collected has gone": `rm -r "$GIT_TEST_KEPT"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.commit("one")
			work := d.push("")
			_, err := d.publisher().Collect(t.Context(), work, d.inside(d.work))
			require.NoError(t, err)
			o := d.options()
			o.Git, _ = d.cutting(line)
			o.Git.Environ = append(o.Git.Environ, "GIT_TEST_KEPT="+d.dir)
			done, err := publisher.New(o).Publish(t.Context(), work)
			require.Error(t, err)
			assert.Equal(t, task.PublishBegun, done.State, done.Message)
		})
	}
}

// What the remote holds is certain, whatever was in doubt before.
func TestAStopEndsDoubt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit("one")
	work := d.push("")
	_, err := d.publisher().Collect(t.Context(), work, d.inside(d.work))
	require.NoError(t, err)
	o := d.options()
	var cut string
	o.Git, cut = d.cutting(":")
	ended := make(chan task.Publish, 1)
	go func() {
		done, _ := publisher.New(o).Publish(t.Context(), work)
		ended <- done
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(cut); return err == nil }, tiertest.Limit(t), 5*time.Millisecond)
	held, err := d.publisher().Resolve(t.Context(), work, "a stop")
	require.NoError(t, err)
	require.Equal(t, task.PublishRefused, held.State)
	assert.Equal(t, task.PublishRefused, (<-ended).State)
	assert.Empty(t, d.branch())
}

func TestThereMayBeNothingToPublish(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	head := d.commit("one")
	found, err := d.publisher().Collect(t.Context(), d.push(head), d.inside(d.work))
	require.NoError(t, err)
	assert.Equal(t, task.NothingToPublish, found)
	_, err = d.publisher().Collect(t.Context(), d.push(""), d.inside(t.TempDir()))
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "no repository: %v", err)
	_, err = d.publisher().Collect(t.Context(), d.push(""), func(_ context.Context, c providers.Command) (sandbox.Exit, error) {
		_, err := io.WriteString(c.Stdout, "no bundle at all")
		code := 0
		return sandbox.Exit{Code: &code}, err
	})
	require.Error(t, err, "what a sandbox gives is looked at")
}

func TestABranchThatHasMovedIsLeftAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit("one")
	p, work := d.publisher(), d.push("")
	_, err := p.Collect(t.Context(), work, d.inside(d.work))
	require.NoError(t, err)
	d.git(d.work, "checkout", "-q", "--orphan", "other")
	other := d.commit("other")
	d.git(d.work, "push", "-q", d.remote, "HEAD:refs/heads/agent/fix")
	moved, err := p.Publish(t.Context(), work)
	require.NoError(t, err)
	assert.Equal(t, task.PublishRefused, moved.State)
	assert.Equal(t, other, d.branch())
}

func TestTheOperatorsOwnCommand(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.commit("one")
	p := d.publisher()
	for line, want := range map[string]task.PublishState{
		`test "$SBX_TASK" = t-abcdefghijkl && test "$SBX_FENCE" = 3 && git bundle list-heads "$SBX_BUNDLE"`: task.PublishDone,
		"exit 3": task.PublishRefused,
	} {
		work := d.task(task.Spec{Publish: line})
		assert.False(t, p.PushesToGit(work))
		found, err := p.Collect(t.Context(), work, d.inside(d.work))
		require.NoError(t, err)
		require.Equal(t, task.WorkToPublish, found)
		done, err := p.Publish(t.Context(), work)
		require.NoError(t, err)
		assert.Equal(t, want, done.State, "%s: %s", done.Message, d.said.String())
	}
	found, err := p.Collect(t.Context(), d.task(task.Spec{Publish: "true"}), d.inside(t.TempDir()))
	require.NoError(t, err)
	assert.Equal(t, task.WorkToPublish, found, "it may publish something else than commits")
	doubt, err := p.Resolve(t.Context(), d.task(task.Spec{Publish: "true"}), "somebody")
	require.NoError(t, err)
	assert.Equal(t, task.PublishUnknown, doubt.State)
}

// The command's output may be lost; its effect counts.
func TestACommandWhoseOutputNobodyTakesHasPublished(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.options()
	o.Stdout, o.Stderr = full{}, full{}
	done, err := publisher.New(o).Publish(t.Context(), d.task(task.Spec{Publish: "echo out; echo err >&2; sleep 0.1; echo more"}))
	require.NoError(t, err)
	assert.Equal(t, task.PublishDone, done.State, done.Message)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestACommandThatIsCutShortIsInDoubt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	done, _ := d.publisher().Publish(ctx, d.task(task.Spec{Publish: "sleep 30"}))
	assert.Equal(t, task.PublishBegun, done.State)
}

// writeProgram writes an executable file. No fork may happen while it is open: the
// child would hold it open for writing, and nobody could run it ("text file busy").
func writeProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700)
}
