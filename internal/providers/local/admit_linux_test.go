package local

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/sandbox"
)

const gib = 1 << 30

// machine is a proc file system, and what it points at, in a folder of its own; ""
// leaves a file out.
type machine struct {
	meminfo, pressure string
	group             map[string]string // files of the group that sbx stands in
	v1                bool
}

func (m machine) roots(t *testing.T) cgroup.Roots {
	t.Helper()
	root := t.TempDir()
	mounts, own := "31 22 0:38 / "+root+"/group rw - cgroup2 cgroup2 rw\n", "0::/\n"
	if m.v1 {
		mounts, own = "31 22 0:38 / "+root+"/group rw - cgroup cgroup rw,memory\n", "4:memory:/\n"
	}
	files := map[string]string{"proc/meminfo": m.meminfo, "proc/pressure/memory": m.pressure}
	if m.group != nil {
		files["proc/self/mountinfo"], files["proc/self/cgroup"] = mounts, own
		files["group/cgroup.controllers"] = "memory\n"
	}
	for name, text := range m.group {
		files["group/"+name] = text
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return cgroup.Roots{Proc: filepath.Join(root, "proc")}
}

// The machines of the table: 8 GiB of which 2 are free, 80 GiB with 8.5 free, 1 GiB.
const (
	eight = "MemTotal: 8388608 kB\nMemAvailable: 2097152 kB\n"
	large = "MemTotal: 83886080 kB\nMemAvailable: 8912896 kB\n"
	small = "MemTotal: 1048576 kB\nMemAvailable: 838860 kB\n"
	calm  = "some avg10=9.99 avg60=99.00 avg300=99.00 total=5\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=5\n"
)

func TestAdmission(t *testing.T) {
	t.Parallel()
	v2 := func(limit, used string) map[string]string {
		return map[string]string{"memory.max": limit, "memory.current": used, "memory.stat": "inactive_file 268435456\n"}
	}
	for name, tc := range map[string]struct {
		m       machine
		want    int64
		why     string
		unknown int
	}{
		"plenty":              {m: machine{meminfo: eight, pressure: calm}, want: 512 << 20},
		"to the last byte":    {m: machine{meminfo: eight, pressure: calm}, want: gib},
		"one byte over":       {m: machine{meminfo: eight, pressure: calm}, want: gib + 1, why: "2 GiB of this machine's 8 GiB are free, 1 GiB is reserved, 1 GiB is requested"},
		"more than there is":  {m: machine{meminfo: eight}, want: 1<<63 - 1, why: "is requested"},
		"a tenth of much":     {m: machine{meminfo: large}, want: gib, why: "8.5 GiB of this machine's 80 GiB are free, 8 GiB is reserved, 1 GiB is requested"},
		"up to a tenth":       {m: machine{meminfo: large}, want: 512 << 20},
		"half of little":      {m: machine{meminfo: small}, want: 256 << 20},
		"no more than a half": {m: machine{meminfo: small}, want: 384 << 20, why: "819 MiB of this machine's 1 GiB are free, 512 MiB is reserved, 384 MiB is requested"},
		"pressure":            {m: machine{meminfo: eight, pressure: "some avg10=23.50 avg60=0.00\n"}, want: gib, why: "memory pressure is 23.5 %"},
		"just at pressure":    {m: machine{meminfo: eight, pressure: "some avg10=10.00 avg60=0.00\n"}, want: gib, why: "memory pressure is 10 %"},
		"no account of it":    {m: machine{meminfo: eight}, want: gib},
		"pressure is garbage": {m: machine{meminfo: eight, pressure: "some avg10=much\n"}, want: gib, unknown: 1},
		"memory is garbage":   {m: machine{meminfo: "MemTotal: 8388608 kB\n", pressure: calm}, want: 99 * gib, unknown: 1},
		"unknown memory under pressure": {
			m: machine{pressure: "some avg10=50.00\n"}, want: gib, why: "memory pressure is 50 %", unknown: 1,
		},
		"a container": {m: machine{meminfo: large, group: v2("4294967296", "3221225472")}, want: 256 << 20}, // 1 GiB and 256 MiB of cache
		"a tight container": {
			m: machine{meminfo: large, group: v2("4294967296", "3221225472")}, want: 257 << 20,
			why: "/group's 4 GiB are free, 1 GiB is reserved, 257 MiB is requested",
		},
		"a wide container on a tight machine": {
			m: machine{meminfo: eight, group: v2("6442450944", "0")}, want: 2 * gib, why: "2 GiB of this machine's 8 GiB are free",
		},
		"a container without a limit": {m: machine{meminfo: eight, group: v2("max", "99999999999")}, want: gib},
		"a tight container of v1": {
			m:    machine{meminfo: large, v1: true, group: map[string]string{"memory.limit_in_bytes": "2147483648", "memory.usage_in_bytes": "1073741824"}},
			want: 1 << 20, why: "1 GiB of the control group",
		},
		"v1 without a limit": {
			m: machine{meminfo: eight, v1: true, group: map[string]string{"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "7"}}, want: gib,
		},
		"the container's limit is garbage": {m: machine{meminfo: eight, group: v2("lots", "1")}, want: gib, unknown: 1},
		"garbage hides no tight machine":   {m: machine{meminfo: eight, group: v2("lots", "1")}, want: 2 * gib, why: "this machine's", unknown: 1},
		"nothing is told":                  {want: gib, unknown: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why, unknown := readAdmission(tc.m.roots(t)).refusal(tc.want)
			if tc.why == "" {
				assert.Empty(t, why)
			} else {
				assert.Contains(t, why, tc.why)
			}
			assert.Len(t, unknown, tc.unknown, "%q", unknown)
		})
	}
}

func TestAdmitOnThisMachine(t *testing.T) {
	t.Parallel()
	c := &Client{name: "prod", defaults: defaults{memoryBytes: 1 << 50}}
	for _, bytes := range []int64{1 << 50, 0} {
		err := c.Admit(t.Context(), bytes)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%d: no machine has a PiB", bytes)
		require.ErrorContains(t, err, "prod: admit: ")
		assert.Contains(t, fault.HintOf(err), "sbx ls --provider prod")
	}
	assert.Equal(t, fault.KindUsage, fault.KindOf(c.Admit(t.Context(), -1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, fault.KindCanceled, fault.KindOf(c.Admit(ctx, 1<<50)))

	checks := c.checkAdmission()
	require.Len(t, checks, 1)
	assert.Equal(t, sandbox.False, checks[0].Verdict)
	assert.True(t, checks[0].Info, "a full machine is not a broken one")
	assert.Contains(t, checks[0].Message, "is requested")
}

func TestDoctorSaysWhatAdmissionDoesNotKnow(t *testing.T) {
	t.Parallel()
	c := &Client{name: "prod", defaults: defaults{memoryBytes: 512 << 20}}
	for name, tc := range map[string]struct {
		m       machine
		verdict sandbox.Verdict
		message string
	}{
		"room":     {machine{meminfo: eight, pressure: calm}, sandbox.True, "one of 512 MiB may start now"},
		"no room":  {machine{meminfo: eight, pressure: "some avg10=50.00\n"}, sandbox.False, "memory pressure is 50 %"},
		"unknown":  {machine{pressure: calm}, sandbox.Unknown, "one may start, but this is unknown: the free memory"},
		"unknowns": {machine{pressure: "x\n"}, sandbox.Unknown, "one may start, but this is unknown: the free memory, the memory pressure"},
		"a group": {
			machine{meminfo: eight, group: map[string]string{"memory.max": "x"}}, sandbox.Unknown, "/memory.max has no amount: \"x\"",
		},
	} {
		check := c.checkMemory(readAdmission(tc.m.roots(t)))
		assert.Equal(t, tc.verdict, check.Verdict, name)
		assert.Contains(t, check.Message, tc.message, name)
		assert.NotContains(t, check.Message, "\n", name)
	}
}
