package cgroup

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestScopeArgs(t *testing.T) {
	t.Parallel()
	head := []string{"systemd-run", "--user", "--scope", "--quiet", "--collect"}
	for name, tc := range map[string]struct {
		limits Limits
		want   []string
	}{
		"all":         {Limits{MemoryBytes: 64 << 20, PIDs: 32, CPU: 1.5}, []string{"-p", "MemoryMax=67108864", "-p", "MemorySwapMax=0", "-p", "TasksMax=32", "-p", "CPUQuota=150%", "-p", "Delegate=yes"}},
		"none":        {Limits{}, []string{"-p", "Delegate=yes"}},
		"tiny cpu":    {Limits{CPU: 0.001}, []string{"-p", "CPUQuota=1%", "-p", "Delegate=yes"}},
		"memory only": {Limits{MemoryBytes: 1}, []string{"-p", "MemoryMax=1", "-p", "MemorySwapMax=0", "-p", "Delegate=yes"}},
	} {
		want := slices.Concat(head, tc.want, []string{"--unit=sbx-a1", "--", "sh", "-c", "--x $HOME"})
		assert.Equal(t, want, ScopeArgs("a1", tc.limits, []string{"sh", "-c", "--x $HOME"}), name)
	}
}

func TestScopeAvailable(t *testing.T) {
	t.Parallel()
	all := []string{"/run/systemd/system", "/usr/bin/systemd-run", "/run/user/7/bus"}
	env := map[string]string{"PATH": ":rel:/bin:/usr/bin", "XDG_RUNTIME_DIR": "/run/user/7"}
	for name, tc := range map[string]struct {
		without string
		env     map[string]string
		reason  string
	}{
		"works":          {"", env, ""},
		"no systemd":     {"/run/systemd/system", env, "not started with systemd"},
		"no systemd-run": {"/usr/bin/systemd-run", env, "not on PATH"},
		"no path":        {"", map[string]string{"XDG_RUNTIME_DIR": "/run/user/7"}, "not on PATH"},
		"cron":           {"", map[string]string{"PATH": "/usr/bin"}, "XDG_RUNTIME_DIR is not set"},
		"empty":          {"", map[string]string{"PATH": "/usr/bin", "XDG_RUNTIME_DIR": ""}, "XDG_RUNTIME_DIR is not set"},
		"no bus":         {"/run/user/7/bus", env, "no user bus at /run/user/7/bus"},
	} {
		ok, reason := ScopeAvailable(
			func(key string) (string, bool) { v, ok := tc.env[key]; return v, ok },
			func(file string) error {
				if file == tc.without || !slices.Contains(all, file) {
					return fs.ErrNotExist
				}
				return nil
			})
		assert.Equal(t, tc.reason == "", ok, name)
		assert.Contains(t, reason, tc.reason, name)
	}
}
