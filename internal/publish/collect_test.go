package publish

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// collected runs the collect command in dir as a sandbox would.
func (w *world) collected(dir, base string, env ...string) (code int, out, said string) {
	w.t.Helper()
	argv := CollectCommand(base)
	cmd := exec.Command(argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(operator(filepath.Dir(w.remote)), env...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

func TestCollectOutcomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fresh, shallow := t.TempDir(), filepath.Join(t.TempDir(), "shallow")
	w.run(fresh, "init", "--quiet")
	w.commit("second")
	w.run(w.inside, "push", "--quiet", "origin", "HEAD:main")
	w.run(fresh, "clone", "--quiet", "--depth=1", "file://"+w.remote, shallow)
	w.commit("third")
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	noGit := t.TempDir()
	require.NoError(t, os.Symlink(sh, filepath.Join(noGit, "sh")))
	for name, tc := range map[string]struct {
		dir, base string
		env       string
		want      int
	}{
		"since a commit":     {w.inside, w.base, "", 0},
		"since a branch":     {w.inside, "main", "", 0}, // as the remote has it: the local main is HEAD itself
		"all of it":          {w.inside, "", "", 0},
		"no git":             {w.inside, "", "PATH=" + noGit, CollectNoGit},
		"no repository":      {t.TempDir(), "", "", CollectNoRepository},
		"no commit":          {fresh, "", "", CollectNoCommit},
		"nothing since":      {w.inside, w.head(), "", CollectNothing},
		"no such base":       {w.inside, "nowhere", "", CollectNoBase},
		"option":             {w.inside, "--all", "", CollectNoBase},
		"shell in the base":  {w.inside, "$(touch ran)`touch ran`;touch ran", "", CollectNoBase},
		"shallow":            {shallow, "", "", CollectShallow},
		"shallow, nothing":   {shallow, "main", "", CollectNothing},
		"shallow, base gone": {shallow, w.base, "", CollectNoBase},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, said := w.collected(tc.dir, tc.base, tc.env)
			require.Equal(t, tc.want, code, said)
			assert.Equal(t, code == 0, out != "", "stdout is the bundle or nothing")
			assert.Equal(t, code != 0, CollectMeaning(code) != "")
			assert.NoFileExists(t, filepath.Join(tc.dir, "ran"))
			if code != 0 {
				assert.Contains(t, said, "sbx: ")
			}
		})
	}
}

func TestCollectSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("work")
	_, clean, said := w.collected(w.inside, w.base)
	assert.Empty(t, said)
	require.NoError(t, os.WriteFile(filepath.Join(w.inside, "new"), []byte("x"), 0o600))
	code, out, said := w.collected(w.inside, w.base)
	assert.Equal(t, 0, code)
	assert.Contains(t, said, "uncommitted changes are not published")
	assert.Len(t, out, len(clean))
}

func TestCollectInAShallowClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.run(w.inside, "push", "--quiet", "origin", "HEAD:main")
	w.base = w.at("refs/heads/main")
	w.inside = filepath.Join(t.TempDir(), "shallow")
	w.run(filepath.Dir(w.inside), "clone", "--quiet", "--depth=1", "file://"+w.remote, w.inside)
	_, err := w.git.Publish(t.Context(), w.work("t1", "agent/t1"))
	require.NoError(t, err)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
	w.run(w.remote, "fsck", "--connectivity-only", "--no-dangling")
}

func TestCodesOfTheScriptAreTheConstants(t *testing.T) {
	t.Parallel()
	for code := CollectNoGit; code <= CollectFailed; code++ {
		assert.NotEmpty(t, CollectMeaning(code))
	}
	assert.Empty(t, CollectMeaning(0))
	assert.Empty(t, CollectMeaning(137))
}
