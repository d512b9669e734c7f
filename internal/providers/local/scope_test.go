//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/providers/local"
	"sbx/internal/sandbox"
)

// TestABrokenScopeFallsBackToTheWatchdog plants a systemd-run that fails. It
// needs a machine where a scope would be tried: booted with systemd, and no
// cgroup of one's own.
func TestABrokenScopeFallsBackToTheWatchdog(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/run/systemd/system"); err != nil || os.Geteuid() == 0 {
		t.Skip("a scope is tried by ordinary users on machines with systemd only")
	}
	tools := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(tools, "systemd-run"), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tools, "bus"), nil, 0o600))
	env := map[string]string{"PATH": tools + ":/usr/bin:/bin", "XDG_RUNTIME_DIR": tools}
	kind := local.Type()
	p := providers.Profile{Name: "local", Type: kind.Name, Settings: map[string]string{}}
	for _, o := range kind.Options {
		p.Settings[o.Name] = o.Default
	}
	var notices []string
	opened, err := kind.Open(t.Context(), p, providers.Deps{
		Now: time.Now, StateDir: t.TempDir(), Version: "test", Notice: func(text string) { notices = append(notices, text) },
		Lookup: func(key string) (string, bool) { v, ok := env[key]; return v, ok },
	})
	require.NoError(t, err)
	launcher, ok := providers.As[providers.Launcher](opened)
	require.True(t, ok)
	s, err := launcher.Create(t.Context(), sandbox.Spec{Command: []string{"true"}})
	require.NoError(t, err)
	if s.Limits.Enforcement.Hard() {
		t.Skip("a cgroup of one's own was better than a scope")
	}
	require.Equal(t, sandbox.EnforcementWatch, s.Limits.Enforcement)
	require.Len(t, notices, 1)
}
