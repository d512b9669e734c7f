package identity

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

func pidsOf(all []Stat) []int {
	var pids []int
	for _, s := range all {
		pids = append(pids, s.PID)
	}
	return pids
}

func TestFakeTable(t *testing.T) {
	t.Parallel()
	p := tree(t, map[string]string{
		"1/stat":      line(1, "init", "S", 0),
		"10/stat":     line(10, "a) R 1 (b", "S", 1),
		"9/stat":      line(9, "child\n", "R", 10),
		"200/stat":    line(200, "grandchild", "Z", 9),
		"10/environ":  "A=1\x00SBX=x\x00",
		"9/environ":   strings.Repeat("LONG=yes\x00", 2000) + "SBX=x",
		"200/environ": "SBX=xy\x00",
		"3/environ":   "SBX=x\x00", // ended since the directory was read
		"uptime":      "1 1",
		"self/stat":   "",
	})
	all, err := p.All()
	require.NoError(t, err)
	assert.Equal(t, []int{1, 9, 10, 200}, pidsOf(all))
	down, err := p.Descendants(1)
	require.NoError(t, err)
	assert.Equal(t, []int{10, 9, 200}, pidsOf(down))
	assert.Equal(t, byte('Z'), down[2].State)
	marked, err := p.Marked("SBX", "x")
	require.NoError(t, err)
	assert.Equal(t, []int{9, 10}, pidsOf(marked))
	none, err := p.Marked("SBX", "")
	require.NoError(t, err)
	assert.Empty(t, none)
	_, err = p.Stat(3)
	require.ErrorIs(t, err, ErrDead)
	assert.False(t, p.IsMarked(10, "", "=x"))
}

func TestBrokenTable(t *testing.T) {
	t.Parallel()
	_, err := Proc{Root: "/nowhere"}.All()
	require.ErrorIs(t, err, os.ErrNotExist, "no table is not an empty one")
	_, err = Proc{Root: "/nowhere"}.Descendants(1)
	require.Error(t, err)
	_, err = Proc{Root: "/nowhere"}.Marked("A", "1")
	require.Error(t, err)
	p := tree(t, map[string]string{"5/stat": "5 (torn"})
	_, err = p.All()
	require.ErrorIs(t, err, errStat)
	for _, bad := range [][2]string{{"", "x"}, {"A=B", "x"}, {"A\x00", "x"}, {"A", "x\x00"}} {
		_, err := Host().Marked(bad[0], bad[1])
		require.Error(t, err, "%q", bad)
	}
}

func TestIgnoresTerm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"default":            {map[string]string{"7/status": statusText("7", noSignal, noSignal, noSignal)}, false},
		"blocked":            {map[string]string{"7/status": statusText("7", termAlone, noSignal, noSignal)}, false},
		"ignored":            {map[string]string{"7/status": statusText("7", noSignal, termAlone, noSignal)}, true},
		"end of a long line": {map[string]string{"7/status": strings.Repeat("6", 4096) + "SigIgn:\t" + termAlone + "\n"}, false},
		"behind a long line": {map[string]string{"7/status": "Groups:\t" + strings.Repeat("65534 ", 3000) + "\n" + statusText("7", noSignal, termAlone, noSignal)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tree(t, tc.files).IgnoresTerm(7)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
	_, err := Proc{Root: t.TempDir()}.IgnoresTerm(7)
	require.ErrorIs(t, err, ErrDead)
}

func TestOperations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		io   string
		want int64
		ok   bool
	}{
		"both":     {"rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 4\nread_bytes: 0\n", 14, true},
		"torn":     {"rchar: 6976\nsyscr: 10\n", 0, false},
		"empty":    {"", 0, false},
		"negative": {"syscr: -1\nsyscw: 4\n", 0, false},
		"garbage":  {"syscr: x\nsyscw: 4\n", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, ok := tree(t, map[string]string{"7/io": tc.io}).IOOperations(7)
			assert.Equal(t, tc.ok, ok)
			assert.Equal(t, tc.want, n)
		})
	}
	_, ok := Proc{Root: t.TempDir()}.IOOperations(7)
	assert.False(t, ok, "unreadable is unknown")
	n, ok := Host().IOOperations(os.Getpid())
	assert.True(t, ok)
	assert.Positive(t, n)
}

func TestRealTreeAndMark(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	mark := "v" + strconv.Itoa(os.Getpid())
	// A grandchild below a shell, and one that has left its parent and its session.
	c := spawn(t, []string{markKey + "=" + mark}, "sh", "-c", "sleep 600 & setsid sh -c 'sleep 601 & echo $!' ; echo $!; read x")
	orphan, err := strconv.Atoi(c.line(t))
	require.NoError(t, err)
	near, err := strconv.Atoi(c.line(t))
	require.NoError(t, err)

	// In the moment of an exec a process has no environment to read: both have to be past it.
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		for _, pid := range []int{near, orphan} {
			s, err := Host().Stat(pid)
			require.NoError(t, err)
			assert.Equal(t, "sleep", s.Comm)
		}
		marked, err := Host().Marked(markKey, mark)
		require.NoError(t, err)
		assert.Subset(t, pidsOf(marked), []int{c.Process.Pid, near, orphan})
	}, tiertest.Limit(t), time.Millisecond)
	down, err := Host().Descendants(c.Process.Pid)
	require.NoError(t, err)
	assert.Contains(t, pidsOf(down), near)
	assert.NotContains(t, pidsOf(down), orphan, "it has another parent now")
	// The shell between them may not have ended yet.
	met, err := Host().End(t.Context(), func() ([]Stat, error) { return Host().Marked(markKey, mark) })
	require.NoError(t, err)
	assert.GreaterOrEqual(t, met, 3)
	left, err := Host().Marked(markKey, mark)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestRealDispositions(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]bool{
		`trap "" TERM; echo; cat`: true,
		`trap : TERM; echo; cat`:  false,
		`echo; cat`:               false,
	} {
		c := spawn(t, nil, "sh", "-c", script)
		c.line(t)
		require.Eventually(t, func() bool {
			got, err := Host().IgnoresTerm(c.Process.Pid)
			return err == nil && got == want
		}, tiertest.Limit(t), pollEvery, script)
	}
}

func TestRealStatAgreesWithTheKernel(t *testing.T) {
	t.Parallel()
	s := statOf(t, os.Getpid())
	assert.Equal(t, os.Getpid(), s.PID)
	assert.Equal(t, os.Getppid(), s.PPID)
	assert.Greater(t, s.RSSBytes, int64(1<<20))
	assert.Greater(t, s.Threads, 1)
	name, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(string(name)), s.Comm)
	_, err = Host().Stat(1 << 22)
	require.ErrorIs(t, err, ErrDead)
}

func TestNameCannotForgeAStat(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	forged := t.TempDir() + "/x) Z 1 (\n"
	require.NoError(t, os.Symlink(sleep, forged))
	c := spawn(t, nil, forged, "600")
	// Start returns after exec, and the kernel takes the name from the file.
	s := statOf(t, c.Process.Pid)
	if s.Comm != "x) Z 1 (\n" {
		t.Skipf("the program names itself %q", s.Comm)
	}
	assert.Equal(t, os.Getpid(), s.PPID)
	assert.False(t, s.Dead())
}

func BenchmarkAll(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		all, err := Host().All()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(all)), "processes")
	}
}

func BenchmarkAlive(b *testing.B) {
	p, err := Self()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if alive, err := p.Alive(); !alive || err != nil {
			b.Fatal(alive, err)
		}
	}
}

func TestBusiestThread(t *testing.T) {
	t.Parallel()
	mine, known := Host().BusiestThread(os.Getpid())
	assert.True(t, known)
	assert.Positive(t, mine.Wanted)
	assert.NotNil(t, mine.Sleeps)
	_, known = Host().BusiestThread(1 << 30)
	assert.False(t, known, "nobody was not idle, but unknown")

	root := t.TempDir()
	write := func(thread, name, text string) {
		dir := filepath.Join(root, "7", "task", thread)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("7", "schedstat", "5 11 1\n")
	write("8", "schedstat", "9 31 2\n")
	write("8", "status", "Name:\tx\nState:\tR (running)\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t12\n")
	got, known := Proc{Root: root}.BusiestThread(7)
	assert.True(t, known)
	assert.Equal(t, Thread{TID: 8, Wanted: 40, Runnable: true, Sleeps: new(int64(3))}, got, "one thread's time, not the sum of all")
	write("8", "status", "State:\tS (sleeping)\n")
	got, _ = Proc{Root: root}.BusiestThread(7)
	assert.Equal(t, Thread{TID: 8, Wanted: 40}, got)
	write("8", "schedstat", "?\n")
	_, known = Proc{Root: root}.BusiestThread(7)
	assert.False(t, known)
}
