package publish

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestRemoteWithoutAtomicPushes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	w.run(w.remote, "config", "receive.advertiseAtomic", "false")
	for name, err := range map[string]error{
		"probe": w.git.Probe(t.Context(), p.Target), "publish": second(w.git.Publish(t.Context(), p)),
	} {
		assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "%s: %v", name, err)
	}
	assert.Empty(t, w.at("refs/heads/agent/t1"))
}

func second[T any](_ T, err error) error { return err }

// A host that hides refs/sbx rejects the fence before its transaction and moves
// the branch all the same: git's atomic push has this hole. Probe finds it early.
func TestHostThatHidesTheFence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	w.run(w.remote, "config", "receive.hideRefs", "refs/sbx")
	err := w.git.Probe(t.Context(), p.Target)
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "%v", err)
	_, err = w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann", w.git.Now())
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "a stop is not acknowledged: %v", err)
	_, err = w.git.Publish(t.Context(), p)
	require.ErrorIs(t, err, ErrNotAtomic)
	assert.Equal(t, fault.KindPartial, fault.KindOf(err))
}

func TestHostThatShowsNoFence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.remote, "config", "uploadpack.hideRefs", "refs/sbx")
	err := w.git.Probe(t.Context(), w.target("agent/t1"))
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), "%v", err)
	assert.Empty(t, w.run(w.remote, "for-each-ref", "refs/sbx"))
}

func TestProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, w.git.Probe(t.Context(), w.target("agent/t1")))
	assert.Empty(t, w.run(w.remote, "for-each-ref", "refs/sbx"))
	w.empty()
	for name, tc := range map[string]struct {
		remote string
		kind   fault.Kind
	}{
		"no repository": {t.TempDir(), fault.KindUsage},
		"nobody there":  {"http://127.0.0.1:9/x.git", fault.KindUnavailable},
	} {
		err := w.git.Probe(t.Context(), Target{Remote: tc.remote, Branch: "b"})
		assert.Equal(t, tc.kind, fault.KindOf(err), "%s: %v", name, err)
	}
	w.git.Program = filepath.Join(t.TempDir(), "no-git")
	assert.Equal(t, fault.KindLauncher, fault.KindOf(w.git.Probe(t.Context(), w.target("b"))))
}

func TestGitVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"git version 2.39.5": true, "git version 2.31.0": true, "git version 2.30.9": false, "git version 1.99": false,
		"git version 3.0.0-rc1": true, "git version 2.50.1 (Apple Git-155)": true, "": false, "sl 4": false,
	} {
		assert.Equal(t, want, newEnough(text), text)
	}
}

func TestRemoteWithLongObjectNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	w.remote, w.inside = filepath.Join(dir, "r.git"), filepath.Join(dir, "inside")
	w.run(dir, "init", "--quiet", "--bare", "--object-format=sha256", "--initial-branch=main", w.remote)
	m, err := w.git.ForbidPublish(t.Context(), "early", w.target("b"), "ann", w.git.Now())
	require.NoError(t, err, "an empty remote shows its format only when it is pushed to")
	require.Equal(t, Stopped, m.Verdict)
	w.run(dir, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", w.inside)
	w.run(w.inside, "remote", "add", "origin", w.remote)
	w.base = w.commit("first")
	w.run(w.inside, "push", "--quiet", "origin", "main")
	require.NoError(t, w.git.Probe(t.Context(), w.target("b")))
	_, err = w.git.Publish(t.Context(), w.work("t1", "agent/t1"))
	require.NoError(t, err)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
	m, err = w.look("early", w.target("b"))
	require.NoError(t, err)
	assert.Equal(t, Stopped, m.Verdict)
}

// The operator's own configuration of pushes has no effect here.
func TestOperatorsConfigurationPushesNothingMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	home := filepath.Dir(w.remote)
	hooks := filepath.Join(home, "hooks")
	require.NoError(t, os.MkdirAll(hooks, 0o700))
	for _, name := range []string{"pre-push", "reference-transaction"} {
		require.NoError(t, writeProgram(filepath.Join(hooks, name), "#!/bin/sh\npwd >>"+home+"/ran\n"))
	}
	p := w.work("t1", "agent/t1")
	require.NoError(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\thooksPath="+hooks+"\n[push]\n\tfollowTags=true\n\tgpgSign=true\n[commit]\n\tgpgSign=true\n"), 0o600))
	w.git.Environ = append(w.git.Environ, "GIT_DIR="+w.inside+"/.git", "GIT_TRACE=1", "GIT_WORK_TREE=/", "GIT_NAMESPACE=ns")
	_, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	ran, err := os.ReadFile(home + "/ran")
	require.NoError(t, err, "the remote, being of this host, runs them on its side")
	assert.NotContains(t, string(ran), w.git.Dir)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
}

// Hooks and helpers are foreign programs: they get none of the operator's other
// credentials.
func TestGitGetsNoCredentialsOfProviders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := filepath.Join(filepath.Dir(w.remote), "seen")
	require.NoError(t, writeProgram(filepath.Join(w.remote, "hooks", "post-receive"), "#!/bin/sh\nenv >>"+seen+"\n"))
	p := w.work("t1", "agent/t1")
	w.git.Environ = append(w.git.Environ, "E2B_API_KEY=e2b_secret", "DAYTONA_API_KEY=dtn_secret", "VERCEL_TOKEN=secret", "MONOTASK_TOKEN=secret",
		"OMOIOS_TOKEN=secret", "MY_KEY=secret", "AWS_SECRET_ACCESS_KEY=secret", "SBX_STORE_URL=postgres://u:secret@h/d",
		"https_proxy=http://proxy:1", "SSH_AUTH_SOCK=/agent", "GH_TOKEN=of-the-code-host", "XDG_CONFIG_HOME=/xdg", "LC_CTYPE=C")
	_, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	env, err := os.ReadFile(seen)
	require.NoError(t, err)
	assert.NotContains(t, string(env), "secret")
	for _, want := range []string{"PATH=", "HOME=", "https_proxy=http://proxy:1", "SSH_AUTH_SOCK=/agent", "GH_TOKEN=of-the-code-host", "XDG_CONFIG_HOME=/xdg", "LC_CTYPE=C"} {
		assert.Contains(t, string(env), want)
	}
}

// A mirror that serves reads must not decide the result of a push.
func TestReadsAndPushesGoToOneRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mirror := filepath.Join(t.TempDir(), "mirror.git")
	w.run(w.inside, "clone", "--quiet", "--bare", w.remote, mirror)
	config := "[url \"" + mirror + "\"]\n\tinsteadOf = https://example.com/r.git\n[url \"" + w.remote + "\"]\n\tpushInsteadOf = https://example.com/r.git\n"
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(w.remote), ".gitconfig"), []byte(config), 0o600))
	there := Target{Remote: "https://example.com/r.git", Branch: "agent/t1"}
	_, err := w.git.ForbidPublish(t.Context(), "t1", there, "ann", w.git.Now())
	require.NoError(t, err)
	m, err := w.look("t1", there)
	require.NoError(t, err)
	assert.Equal(t, Stopped, m.Verdict)
}
