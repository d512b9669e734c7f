package cgroup

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestDetect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		build  func(k *kernel)
		ok     []sandbox.Enforcement
		reason map[string]string
	}{
		"nothing": {
			build:  func(*kernel) {},
			reason: map[string]string{"cgroup2": "not mounted", "hybrid": "not mounted", "cgroup1": "no memory controller"},
		},
		"unified": {
			build:  func(k *kernel) { k.mountV2("/", "memory pids", false) },
			ok:     []sandbox.Enforcement{"cgroup2"},
			reason: map[string]string{"hybrid": "cgroup v1 has no memory controller", "cgroup1": "cgroup v1 has no memory controller"},
		},
		"hybrid": {
			build:  func(k *kernel) { k.mountV2("/", "", false); k.mountV1("memory") },
			ok:     []sandbox.Enforcement{"hybrid", "cgroup1"},
			reason: map[string]string{"cgroup2": "bound to cgroup v1"},
		},
		"legacy": {
			build:  func(k *kernel) { k.mountV1("memory") },
			ok:     []sandbox.Enforcement{"cgroup1"},
			reason: map[string]string{"cgroup2": "v2 is not mounted", "hybrid": "v2 is not mounted"},
		},
		"only controllers that nobody needs": {
			build:  func(k *kernel) { k.mountV1("net_cls") },
			reason: map[string]string{"cgroup1": "no memory controller"},
		},
		"v2 without memory": {
			build:  func(k *kernel) { k.mountV2("/", "hugetlb", false) },
			reason: map[string]string{"cgroup2": "has no memory controller"},
		},
		"read only": {
			build: func(k *kernel) {
				k.mountV2("/", "memory", false)
				k.mountV1("pids")
				k.denied["v2"] = true
			},
			reason: map[string]string{"cgroup2": "permission denied"},
		},
		"root control is not writable": {
			build: func(k *kernel) {
				k.mountV2("/", "memory", false)
				k.denied["v2/cgroup.subtree_control"] = true
			},
			reason: map[string]string{"cgroup2": "cannot be delegated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKernel(t)
			tc.build(k)
			h := k.host()
			var ok []sandbox.Enforcement
			for _, p := range h.Possible() {
				if p.OK {
					ok = append(ok, p.Enforcement)
					assert.Empty(t, p.Reason)
					continue
				}
				assert.NotEmpty(t, p.Reason)
				assert.Contains(t, p.Reason, tc.reason[string(p.Enforcement)])
			}
			assert.Equal(t, tc.ok, ok)
			assert.Empty(t, k.log, "looking changes nothing")
		})
	}
}

func TestDetectOfAnotherProcess(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.mountV2("/", "memory", false)
	k.put("proc/77/mountinfo", k.get("proc/self/mountinfo"))
	k.put("proc/77/cgroup", "0::/there\n")
	h, err := detectHost(Roots{Proc: filepath.Join(k.root, "proc")}, 77, k, k)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(k.root, "v2/there"), h.unified.own)
}

func TestDetectPrefersTheMountThatShowsUs(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	k.put("proc/self/mountinfo", "1 1 0:38 /other /elsewhere rw - cgroup2 cgroup2 rw\n2 1 0:38 / "+k.root+"/v2 rw - cgroup2 cgroup2 rw\n"+
		"3 1 0:39 /other /m1 rw - cgroup cgroup rw,memory\n4 1 0:39 / /m2 rw - cgroup cgroup rw,memory\n")
	k.put("proc/self/cgroup", "0::/mine\n4:memory:/mine\n")
	h := k.host()
	assert.Equal(t, filepath.Join(k.root, "v2/mine"), h.unified.own)
	require.Len(t, h.legacy, 1)
	assert.Equal(t, "/m2/mine", h.legacy[0].own)
}

type brokenDisk struct {
	disk
	fail string
}

func (b brokenDisk) readText(file string) (string, error) {
	if filepath.Base(file) == b.fail {
		return "", &fs.PathError{Op: "read", Path: file, Err: syscall.EIO}
	}
	return "", nil
}

func TestDetectFails(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"mountinfo", "cgroup"} {
		_, err := detectHost(Roots{Proc: "/proc"}, 0, brokenDisk{fail: file}, disk{})
		require.ErrorIs(t, err, syscall.EIO, file)
	}
	_, err := Detect(Roots{Proc: "/proc", Owner: "a.b"}, 0)
	require.ErrorIs(t, err, ErrName, "an owner with a dot could pass for another's id")
	h, err := Detect(Roots{Proc: t.TempDir()}, 0)
	require.NoError(t, err, "a system without proc has no control groups, which is no error")
	_, err = Create(h, "a1", Limits{})
	require.ErrorIs(t, err, ErrNoCgroup)
}

func TestCommon(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]string{
		{"/c/a/b", "/c/a/d", "/c/a"}, {"/c", "/c/sbx", "/c"}, {"/c/sbx/x", "/c/sbx", "/c/sbx"}, {"/c/ab", "/c/a", "/c"}, {"/a", "/b", "/"},
	} {
		assert.Equal(t, tc[2], commonDir(tc[0], tc[1]), strings.Join(tc[:2], " "))
	}
}
