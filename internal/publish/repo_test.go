package publish

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// world is a bare repository as the code host, and a clone of it as the sandbox's work
// directory.
type world struct {
	t      *testing.T
	git    *Git
	remote string
	inside string
	base   string // where main is on the remote
}

func operator(home string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
}

// firstWorld is a folder with the repositories of a new world, which each test copies: git takes eight
// processes for them.
var firstWorld struct {
	once sync.Once
	dir  string
}

func makeFirstWorld(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbx-publish-world-") //nolint:usetesting // TestMain removes it
	require.NoError(t, err)
	firstWorld.dir = dir
	cmd := exec.Command("sh", "-ec", `git init --quiet --bare --template= --initial-branch=main remote.git
mkdir remote.git/hooks
git init --quiet --template= --initial-branch=main inside
cd inside
git remote add origin "$HOME/remote.git"
echo first >file
git add file
git commit --quiet -m first
git push --quiet origin main
git fetch --quiet origin`)
	cmd.Dir, cmd.Env = dir, operator(dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	firstWorld.once.Do(func() { makeFirstWorld(t) })
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(firstWorld.dir)))
	config := filepath.Join(dir, "inside", ".git", "config")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, bytes.ReplaceAll(text, []byte(firstWorld.dir), []byte(dir)), 0o600))
	w := &world{t: t, remote: filepath.Join(dir, "remote.git"), inside: filepath.Join(dir, "inside")}
	w.git = &Git{Environ: operator(dir), Dir: t.TempDir(), Limit: 20 * time.Second, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	w.base = w.at("refs/heads/main")
	return w
}

// try runs git as somebody other than sbx.
func (w *world) try(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, operator(filepath.Dir(w.remote))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (w *world) run(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.try(dir, args...)
	require.NoError(w.t, err, "git %v: %s", args, out)
	return out
}

// commit changes one file inside and commits it.
func (w *world) commit(text string) string {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.inside, "file"), []byte(text+"\n"), 0o600))
	w.run(w.inside, "add", "file")
	w.run(w.inside, "commit", "--quiet", "--allow-empty", "-m", text)
	return w.run(w.inside, "rev-parse", "HEAD")
}

// at is where a ref of the remote is, "" when it does not exist.
func (w *world) at(ref string) string {
	out, _ := w.try(w.remote, "rev-parse", "--verify", "--quiet", ref)
	return out
}

// look reads what the remote holds of a task.
func (w *world) look(task string, t Target) (Mark, error) {
	s, err := w.git.openScratch(w.t.Context(), t)
	if err != nil {
		return Mark{}, err
	}
	defer s.remove()
	return s.readFence(w.t.Context(), task)
}

func (w *world) target(branch string) Target { return Target{Remote: w.remote, Branch: branch} }

// collect runs the collect command inside, as a provider would, into a bundle.
func (w *world) collect(base string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "work.bundle")
	f, err := NewLimitFile(path, 10<<20)
	require.NoError(w.t, err)
	argv := CollectCommand(base)
	cmd := exec.Command(argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.inside, operator(filepath.Dir(w.remote)), f, &said
	require.NoError(w.t, cmd.Run(), "%s", &said)
	require.NoError(w.t, f.Close())
	return path
}

// work is one more commit inside, and the push that would publish it to a new branch.
func (w *world) work(task, branch string) Push {
	w.t.Helper()
	w.commit("work of " + task)
	return Push{Task: task, Fence: 3, Target: w.target(branch), Bundle: w.collect(w.base)}
}

func (w *world) head() string { return w.run(w.inside, "rev-parse", "HEAD") }

// hook makes the remote run a line of shell on each push.
func (w *world) hook(name, line string) {
	w.t.Helper()
	path := filepath.Join(w.remote, "hooks", name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, writeProgram(path, "#!/bin/sh\n"+line+"\n"))
}

// empty asserts that no scratch repository is left.
func (w *world) empty() {
	w.t.Helper()
	left, err := os.ReadDir(w.git.Dir)
	require.NoError(w.t, err)
	require.Empty(w.t, left, "scratch repositories are removed")
}

// writeProgram writes an executable file. No fork may happen while it is open: the
// child would hold it open for writing, and nobody could run it ("text file busy").
func writeProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700)
}
