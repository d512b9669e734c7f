package guest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

func TestParseExit(t *testing.T) {
	t.Parallel()
	const begun = "started 1700000000\nbefore file memory.events\nbefore oom_kill 4\n"
	type want struct {
		class      sandbox.Class
		cause      sandbox.Cause
		confidence sandbox.Confidence
	}
	unknown := want{sandbox.ClassUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}
	bare := want{sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}
	for name, tc := range map[string]struct {
		text     string
		want     want
		evidence string // of the last item
	}{
		"ok":                     {"state ended\n" + begun + "code 0\nended 1700000009\nafter file memory.events\nafter oom_kill 4\n   ", want{sandbox.ClassOK, sandbox.CauseNone, sandbox.Certain}, "0"},
		"killed":                 {"state ended\n" + begun + "code 137\nended 1700000009\nafter file memory.events\nafter oom_kill 4\n", bare, "0"},
		"killed for memory":      {"state ended\n" + begun + "code 137\nafter file memory.events\nafter oom_kill 5\nafter peak 1000\nafter max 1000\n", want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}, "the whole sandbox, not only this program"},
		"without a limit":        {"state ended\n" + begun + "code 137\nafter file memory.events\nafter oom_kill 6\nafter peak 1000\nafter max max\n", want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}, "the whole sandbox, not only this program"},
		"the old limit of none":  {"state ended\n" + begun + "code 137\nafter file memory.oom_control\nafter oom_kill 6\nafter peak 9223372036854771000\nafter max 9223372036854771712\n", want{sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable}, "the whole sandbox, not only this program"},
		"a child for memory":     {"state ended\n" + begun + "code 3\nafter file memory.events\nafter oom_kill 5\n", want{sandbox.ClassAgentError, sandbox.CauseOOMChild, sandbox.Probable}, "the whole sandbox, not only this program"},
		"the counter was lost":   {"state ended\n" + begun + "code 137\n", bare, "137"},
		"the counter began anew": {"state ended\n" + begun + "code 137\nafter file memory.events\nafter oom_kill 1\n", bare, "137"},
		"only counted after":     {"state ended\ncode 137\nafter file memory.events\nafter oom_kill 1\n", bare, "137"},
		"killed by us":           {"state ended\n" + begun + "killed 9 1700000005\ncode 137\n", want{sandbox.ClassKilledByUs, sandbox.CauseStopped, sandbox.Certain}, "9"},
		"end requested":          {"state ended\n" + begun + "killed 15 1700000005\ncode 0\n", want{sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Certain}, "15"},
		"asked, then killed":     {"state ended\n" + begun + "killed 15 1700000005\ncode 137\n", bare, "15"},
		"killed, left by itself": {"state ended\n" + begun + "killed 9 1700000005\ncode 3\n", want{sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}, "9"},
		"its own 125":            {"state ended\n" + begun + "code 125\n", want{sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}, "125"},
		"not started":            {"state ended\n" + begun + "code 125\nunstarted\n", want{sandbox.ClassLauncher, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}, "125"},
		"nobody saw it":          {"state lost\n" + begun, unknown, "unknown: the process that watched the program died"},
		"nobody saw it, counted": {"state lost\n" + begun + "after file memory.events\nafter oom_kill 5\n", want{sandbox.ClassUnknown, sandbox.CauseOOM, sandbox.Probable}, "the whole sandbox, not only this program"},
		"no room for the code":   {"state ended\n" + begun, unknown, "it ended, and its exit code could not be stored"},
		"its words are no facts": {"state ended\ncode 1\nline code 0\nline state running\nline after oom_kill 99\n", want{sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown}, "1"},
		"its words":              {"state ended\ncode 134\nline JavaScript heap out of memory\r\n", want{sandbox.ClassCrash, sandbox.CauseRuntimeHeap, sandbox.Probable}, "JavaScript heap out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := guest.ParseExit([]byte(tc.text))
			require.NoError(t, err)
			require.NotNil(t, got)
			assert.Equal(t, tc.want, want{got.Class, got.Cause, got.Confidence}, "%+v", got.Evidence)
			require.NotEmpty(t, got.Evidence)
			assert.Equal(t, tc.evidence, got.Evidence[len(got.Evidence)-1].Value)
		})
	}
	running, err := guest.ParseExit([]byte("state running\n" + begun + "line code 0\n"))
	require.NoError(t, err)
	assert.Nil(t, running)
	for _, text := range []string{"", "Welcome!\n", "code 0\n", "state dancing\ncode 0\n"} {
		_, err := guest.ParseExit([]byte(text))
		require.ErrorIs(t, err, guest.ErrOutput, "%q", text)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
		assert.NotEmpty(t, fault.HintOf(err))
	}
}

// FuzzParseExit checks that the cause is memory only where a counter grew.
func FuzzParseExit(f *testing.F) {
	f.Add([]byte("state ended\nbefore file f\nbefore oom_kill 1\ncode 137\nended 3\nafter oom_kill 2\nline x\n"))
	f.Add([]byte("state lost\nkilled 9 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := guest.ParseExit(text)
		if err != nil || got == nil {
			return
		}
		if got.Class == "" || got.Confidence == "" || got.Raw != "" && len(got.Evidence) == 0 {
			t.Fatalf("%q gives %+v", text, got)
		}
		moved := false
		for _, e := range got.Evidence {
			moved = moved || e.What == "oom_kill" && e.Value != "0"
		}
		if (got.Cause == sandbox.CauseOOM || got.Cause == sandbox.CauseOOMChild) && !moved {
			t.Fatalf("%q gives %+v", text, got)
		}
	})
}

func TestParseUsage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	whole := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		text string
		want sandbox.Usage
	}{
		"cgroup2": {
			"source cgroup2\nmemory 5000\nlimit max\npeak 6000\npids 3\ninactive_file 1000\nusage_usec 2500000\noom_kill 1\n",
			sandbox.Usage{CPUSeconds: new(2.5), MemoryBytes: whole(4000), MemoryPeakBytes: whole(6000), PIDs: whole(3), OOMKills: whole(1), Source: "probe command (cgroup2)"},
		},
		"cgroup1": {
			"source cgroup1\nmemory 5000\nlimit 8000\nusage_nsec 1500000000\ntotal_inactive_file 6000\n",
			sandbox.Usage{CPUSeconds: new(1.5), MemoryBytes: whole(0), MemoryLimitBytes: whole(8000), Source: "probe command (cgroup1)"},
		},
		"cache not known": {
			"source cgroup2\nmemory 5000\nlimit 8000\n",
			sandbox.Usage{MemoryLimitBytes: whole(8000), Source: "probe command (cgroup2)"},
		},
		"cgroup1 without a limit": {
			"source cgroup1\nlimit 9223372036854771712\n",
			sandbox.Usage{Source: "probe command (cgroup1)"},
		},
		"machine": {
			"source machine\nMemTotal:  1000 kB\nMemAvailable: 400 kB\ncpu  100 0 50 900 30 5 5 10 0 0\nticks 100\noom_kill 2\npids 9\n",
			sandbox.Usage{CPUSeconds: new(1.7), MemoryBytes: whole(600 << 10), MemoryLimitBytes: whole(1000 << 10), PIDs: whole(9), OOMKills: whole(2), Source: "probe command (machine)"},
		},
		"an old machine": {
			"source machine\nMemTotal: 1000 kB\ncpu  100 0 50\n",
			sandbox.Usage{MemoryLimitBytes: whole(1000 << 10), Source: "probe command (machine)"},
		},
		"nothing to read": {"source cgroup2\nmemory\npids -1\npeak nan\nlimit inf\n", sandbox.Usage{Source: "probe command (cgroup2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := guest.ParseUsage([]byte(tc.text), now)
			require.NoError(t, err)
			tc.want.At = now
			assert.Equal(t, tc.want, got)
		})
	}
	for _, text := range []string{"", "memory 5000\n", "source\n", "source elsewhere\n"} {
		_, err := guest.ParseUsage([]byte(text), now)
		require.ErrorIs(t, err, guest.ErrOutput, "%q", text)
	}
}

func FuzzParseUsage(f *testing.F) {
	f.Add([]byte("source cgroup2\nmemory 5000\nlimit 1e300\nusage_usec 1\n"))
	f.Add([]byte("source machine\nMemTotal: 1 kB\ncpu 1 2 3\nticks 100\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		u, err := guest.ParseUsage(text, time.Time{})
		if err != nil {
			return
		}
		for _, n := range []*int64{u.MemoryBytes, u.MemoryLimitBytes, u.MemoryPeakBytes, u.PIDs, u.OOMKills} {
			if n != nil && *n < 0 {
				t.Fatalf("%q gives %+v", text, u)
			}
		}
		if u.CPUSeconds != nil && !(*u.CPUSeconds >= 0) {
			t.Fatalf("%q gives %v s", text, *u.CPUSeconds)
		}
	})
}

func TestParseList(t *testing.T) {
	t.Parallel()
	got, err := guest.ParseList([]byte("run a ended 1700000000\nnoise\nrun main running \nrun b lost x\nrun ../c ended 1\nrun d\nend\nrun e ended 1\n"))
	require.NoError(t, err)
	assert.Equal(t, []guest.Run{
		{Tag: "a", StartedAt: time.Unix(1700000000, 0).UTC(), Ended: true}, {Tag: "main"}, {Tag: "b", Ended: true, Lost: true},
	}, got)
	_, err = guest.ParseList([]byte("run a ended 1700000000\n"))
	require.ErrorIs(t, err, guest.ErrOutput)
}

func FuzzParseList(f *testing.F) {
	f.Add([]byte("run a ended 1\nend\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		runs, err := guest.ParseList(text)
		for _, r := range runs {
			if err != nil || !guest.ValidTag(r.Tag) || r.Lost && !r.Ended {
				t.Fatalf("%q gives %+v", text, r)
			}
		}
	})
}
