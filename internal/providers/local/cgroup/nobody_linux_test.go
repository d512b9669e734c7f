package cgroup

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// asNobody runs f on a thread that has given up root; the thread ends with it.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	var failed error
	onThread(func() bool {
		for _, call := range []uintptr{syscall.SYS_SETRESGID, syscall.SYS_SETRESUID} {
			if _, _, e := syscall.RawSyscall(call, nobody, nobody, nobody); e != 0 {
				failed = e
				return false
			}
		}
		f()
		return false // a thread that lost its rights is not for others
	})
	require.NoError(t, failed)
}

func TestUnprivilegedIsToldWhy(t *testing.T) {
	t.Parallel()
	asNobody(t, func() {
		h, err := Detect(Roots{Proc: "/proc"}, 0)
		assert.NoError(t, err) //nolint:testifylint // require may not end a foreign goroutine
		for _, p := range h.Possible() {
			assert.Equal(t, p.OK, p.Reason == "", "%+v", p)
			if p.OK {
				return // this machine delegates to ordinary users
			}
		}
		_, err = Create(h, "a1", Limits{MemoryBytes: 1 << 20})
		assert.ErrorIs(t, err, ErrNoCgroup) //nolint:testifylint // require may not end a foreign goroutine
		assert.Contains(t, err.Error(), "permission denied")
	})
}

func TestGivenAwayGroupServesAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	h := real1(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a group away")
	}
	gift := filepath.Join(h.legacyHierarchy("memory").mount, h.owner)
	require.NoError(t, os.Mkdir(gift, 0o755))
	t.Cleanup(func() { assert.NoError(t, syscall.Rmdir(gift)) })
	require.NoError(t, os.Chown(gift, 65534, 65534))
	h.legacy = []hierarchy{{controllers: []string{"memory"}, mount: gift}}
	asNobody(t, func() {
		g, err := Create(h, "a1", Limits{MemoryBytes: 32 << 20})
		if !assert.NoError(t, err) {
			return
		}
		assert.NoError(t, g.JoinThread())
		p, err := spawn(g, []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=128M", "count=1"})
		if assert.NoError(t, err) {
			_, err = p.Wait()
			assert.NoError(t, err)
			assert.Equal(t, int64(1), *g.Stats().OOMKills)
		}
		_ = syscall.Rmdir(g.Paths()[0]) // still holds this thread
	})
	require.Eventually(t, func() bool {
		_ = syscall.Rmdir(filepath.Join(gift, "sbx", h.dirName("a1")))
		return syscall.Rmdir(filepath.Join(gift, "sbx")) == nil
	}, tiertest.Limit(t), time.Millisecond, "the thread has ended")
}
