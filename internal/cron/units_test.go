package cron_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cron"
)

// TestUnitsAreUnits: systemd's own judge finds nothing in them.
func TestUnitsAreUnits(t *testing.T) {
	t.Parallel()
	judge, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here, which judges units")
	}
	for name, p := range map[string]cron.Plan{"remote": remote(), "local": local(), "odd": odd("a b'\"%$c")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p.Binary = filepath.Join(dir, "s b%x")
			write(t, p.Binary, "#!/bin/sh\n", 0o755)
			var files []string
			for _, f := range p.Units() {
				path := filepath.Join(dir, f.Name)
				write(t, path, f.Text, 0o644)
				files = append(files, path)
			}
			said, err := exec.CommandContext(t.Context(), judge, append([]string{"verify", "--man=no"}, files...)...).CombinedOutput()
			var ours []string
			for line := range strings.Lines(string(said)) {
				if strings.Contains(line, "sbx-") {
					ours = append(ours, line)
				}
			}
			assert.Empty(t, ours, "%v", err)
			if err != nil && len(ours) == 0 {
				t.Log("systemd-analyze objects to other units of this machine: " + string(said))
			}
		})
	}
}

// TestCalendarsAreCalendars, and no two layers begin in the same minute.
func TestCalendarsAreCalendars(t *testing.T) {
	t.Parallel()
	judge, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here, which judges calendars")
	}
	for _, e := range remote().Entries() {
		said, err := exec.CommandContext(t.Context(), judge, "calendar", e.Calendar).CombinedOutput()
		require.NoError(t, err, "%s: %s", e.Calendar, said)
	}
}

// execWords splits a command line as systemd does: quotes, backslashes, doubled
// percent signs and dollars.
func execWords(tb testing.TB, line string) []string {
	tb.Helper()
	var list []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		var b strings.Builder
		quoted := line[0] == '"'
		i := 0
		if quoted {
			i = 1
		}
		for ; i < len(line); i++ {
			c := line[i]
			if c == '"' && quoted || c == ' ' && !quoted {
				break
			}
			if c == '\\' || c == '%' || (c == '$' && len(list) > 0) {
				require.Less(tb, i+1, len(line), line)
				if c != '\\' {
					require.Equal(tb, c, line[i+1], "a single %c means something: %s", c, line)
				}
				i++
			}
			b.WriteByte(line[i])
		}
		if quoted {
			require.Less(tb, i, len(line), "a quote is open: %s", line)
			i++
		}
		list = append(list, b.String())
		line = line[min(i, len(line)):]
	}
	return list
}

func setting(text, name string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			list = append(list, strings.TrimSuffix(value, "\n"))
		}
	}
	return list
}

func FuzzUnits(f *testing.F) {
	for _, seed := range []string{"", " ", "a b", "'", `"`, `\`, "%", "$HOME", "${X}", `a"b\`, "%n", "é", ";"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := odd(text)
		p.Env = []string{"A=" + text}
		if p.Check() != nil {
			return
		}
		for i, e := range p.Entries() {
			service := p.Units()[2*i].Text
			start := setting(service, "ExecStart")
			require.Len(t, start, 1, "nothing ends the line")
			require.Equal(t, e.Argv, execWords(t, start[0]))
			require.Len(t, setting(service, "Environment"), 1)
			require.Len(t, setting(service, "ReadWritePaths"), 2)
		}
	})
}

// TestWallsLeaveOutWhatLocalNeeds.
func TestWallsLeaveOutWhatLocalNeeds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PrivateTmp", "ProtectControlGroups", "ProtectKernelTunables", "ProtectProc", "CapabilityBoundingSet", "SystemCallFilter"} {
		assert.Len(t, setting(remote().Units()[0].Text, name), 1, name)
		assert.Empty(t, setting(local().Units()[0].Text, name), name)
		assert.Contains(t, local().Units()[0].Text, name, "and it says so")
	}
	for _, p := range []cron.Plan{remote(), local()} {
		text := p.Units()[0].Text
		assert.Equal(t, []string{"yes"}, setting(text, "NoNewPrivileges"))
		assert.Equal(t, []string{"strict"}, setting(text, "ProtectSystem"))
		assert.Contains(t, setting(text, "ReadWritePaths"), p.StateDir)
		assert.Equal(t, []string{"1000"}, setting(text, "User"))
	}
	assert.Contains(t, setting(remote().Units()[0].Text, "ReadWritePaths"), "/var/lib/node_exporter")
	assert.Equal(t, []string{"-/etc/sbx/cron.env"}, setting(remote().Units()[0].Text, "EnvironmentFile"))
}
