//go:build linux

package guest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers/guest"
	"sbx/internal/testkit/tiertest"
)

func TestTheNewestOutputStays(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", `i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero | tr '\000' x; i=$((i+1)); done; echo; echo last`)
		require.Equal(b, 0, *b.ended("").Code, "a program is not stopped by the cap")
		out, _, dropped := b.all()
		assert.True(b, strings.HasSuffix(out, "x\nlast\n"), "the end is kept")
		assert.Equal(b, int64(4_000_006), dropped+int64(len(out)), "what is dropped is counted")
		assert.LessOrEqual(b, len(out), 1<<20)
		assert.GreaterOrEqual(b, len(out), 1<<20*2/3)
		assert.False(b, b.read(guest.Offsets{}).Cut)
	})
}

func TestOutputOf20MBWithoutALineEnd(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.start(guest.Program{Args: []string{"sh", "-c", `head -c 20000000 /dev/zero; printf end >&2`}})
		require.Equal(b, 0, *b.ended("").Code)
		got := b.read(guest.Offsets{})
		assert.Equal(b, "end", string(got.Err))
		assert.Len(b, got.Out, guest.MaxRead)
		assert.Positive(b, got.DroppedOut)
		assert.True(b, got.More)
		files, err := filepath.Glob(filepath.Join(b.home, ".sbx/runs/main/out.*"))
		require.NoError(b, err)
		size := int64(0)
		for _, f := range files {
			info, err := os.Stat(f)
			require.NoError(b, err)
			size += info.Size()
		}
		assert.LessOrEqual(b, size, int64(guest.DefaultMaxOutput))
	})
}

// TestPiecesJoin reads from each offset while the program writes.
func TestPiecesJoin(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.start(guest.Program{MaxOutput: 64 << 20, Args: []string{"sh", "-c", `seq 1 150000; seq 1 1000 >&2`}})
		var out, errs strings.Builder
		for at, ended := (guest.Offsets{}), false; !ended; {
			got := b.read(at)
			out.Write(got.Out)
			errs.Write(got.Err)
			at, ended = got.Next, got.Ended && !got.More
		}
		assert.Equal(b, count(150000), out.String())
		assert.Equal(b, count(1000), errs.String())
	})
}

// TestAProgramWaitsForItsReader: with HoldsBack no output is lost for a slow reader, and the
// program continues after a minute without one.
func TestAProgramWaitsForItsReader(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.start(guest.Program{MaxOutput: 256 << 10, HoldsBack: true, Args: []string{"sh", "-c", `seq 1 150000; seq 1 1000 >&2`}})
		var out, errs strings.Builder
		for at, ended := (guest.Offsets{}), false; !ended; {
			got := b.read(at)
			assert.Zero(b, got.DroppedOut+got.DroppedErr)
			out.Write(got.Out)
			errs.Write(got.Err)
			at, ended = got.Next, got.Ended && !got.More
		}
		assert.Equal(b, count(150000), out.String())
		assert.Equal(b, count(1000), errs.String())
	})
	each(t, func(b box) {
		b.start(guest.Program{MaxOutput: 256 << 10, HoldsBack: true, Args: []string{"sh", "-c", `seq 1 150000`}})
		long := time.Now().Add(-2 * time.Minute)
		require.NoError(b, os.Chtimes(filepath.Join(b.home, ".sbx/runs/main/hold"), long, long))
		require.Equal(b, 0, *b.ended("").Code, "it waits for a reader who is gone")
		assert.Positive(b, b.read(guest.Offsets{}).DroppedOut)
	})
}

func count(n int) string {
	var s strings.Builder
	for i := range n {
		s.WriteString(strconv.Itoa(i+1) + "\n")
	}
	return s.String()
}

// TestAPollCostsTheSameHoweverMuchWasWritten measures the bytes that a read at the end costs, with
// the children of its shell.
func TestAPollCostsTheSameHoweverMuchWasWritten(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.start(guest.Program{Args: []string{"sh", "-c", `head -c 9000000 /dev/zero`}})
		require.Equal(b, 0, *b.ended("").Code)
		var at guest.Offsets
		for more := true; more; {
			got := b.read(at)
			at, more = got.Next, got.More
		}
		for where, from := range map[string]guest.Offsets{"at the end": at, "in the middle": {Out: 4_000_001}} {
			out, _ := b.run("(" + guest.ReadOutputScript("", from) + ") > /dev/null; cat /proc/$$/io")
			_, rest, found := strings.Cut(string(out), "rchar: ")
			require.True(b, found, "%s", out)
			word, _, _ := strings.Cut(rest, "\n")
			n, err := strconv.Atoi(word)
			require.NoError(b, err)
			assert.Less(b, n, 3<<20, where)
			out, _ = b.run(guest.ReadOutputScript("", from))
			got, err := guest.ParseOutput(out, from)
			require.NoError(b, err)
			if where == "at the end" {
				assert.Less(b, len(out), 100)
			} else {
				assert.NotEmpty(b, got.Out, "up to the end of one file")
			}
		}
	})
}

// TestAFullDisk runs in a file system of 64 KiB, which is full before the program has written
// everything.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt").Run(); err != nil {
		t.Skip("no file system may be mounted here: ", err)
	}
	each(t, func(b box) {
		if b.shell[0] == "busybox" || b.bare {
			b.Skip("this box has no mount")
		}
		at := guest.Offsets{}
		script := `mount -t tmpfs -o size=64k none "$HOME" && cd / || exit 99
` + subshell(guest.LaunchScript(guest.Program{MaxOutput: 64 << 20, Args: []string{"sh", "-c", "seq 1 100000 || exit 5; exit 6"}})) + ` >&2
while [ ! -e "$HOME/.sbx/runs/main/code" ]; do sleep 0.05; done
` + subshell(guest.ReadExitScript("")) + `
echo ====
` + subshell(guest.ReadOutputScript("", at))
		shell := append([]string{"-rm"}, append(b.shell, "-c", script)...)
		c := exec.Command("unshare", shell...)
		c.Env = []string{"HOME=" + b.home, "PATH=" + b.path}
		out, err := c.Output()
		require.NoError(b, err)
		exit, output, found := strings.Cut(string(out), "====\n")
		require.True(b, found, "%s", out)
		e, err := guest.ParseExit([]byte(exit))
		require.NoError(b, err)
		require.NotNil(b, e.Code, "%s", exit)
		assert.Equal(b, 6, *e.Code, "the code has its room")
		got, err := guest.ParseOutput([]byte(output), at)
		require.NoError(b, err)
		assert.True(b, got.Cut)
		assert.True(b, strings.HasPrefix(string(got.Out), "1\n2\n3\n"))
		assert.Less(b, len(got.Out), 64<<10)
	})
}

// TestAProgramThatWritesElsewhereIsListed: its log is no evidence of what it does. The program itself, a child of it, and
// one of the two streams.
func TestAProgramThatWritesElsewhereIsListed(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		sh := func(_ context.Context, text string) ([]byte, int, error) {
			out, code := b.run(text)
			return out, code, nil
		}
		b.start(guest.Program{Tag: "plain", Args: []string{"sh", "-c", "sleep 600; :"}})
		b.start(guest.Program{Tag: "joined", Args: []string{"sh", "-c", "sleep 600 2>&1; :"}})
		for tag, text := range map[string]string{
			"itself": "exec sleep 600 > out.json 2>&1", "child": "sleep 600 > out.json; :", "stderr": "exec sleep 600 2> /dev/null", "pipe": "sleep 600 | cat; :",
		} {
			b.start(guest.Program{Tag: tag, Args: []string{"sh", "-c", text}})
		}
		for tag, listed := range map[string]bool{"plain": false, "joined": false, "itself": true, "child": true, "stderr": true, "pipe": true} {
			assert.Eventually(b, func() bool {
				found, _, err := guest.UnseenProcesses(b.Context(), sh, tag)
				require.NoError(b, err)
				n := 0
				for _, p := range found {
					if p.PID > 0 {
						n++
					}
				}
				return listed == (n > 0)
			}, tiertest.Limit(b), 10*time.Millisecond, tag)
		}
	})
}

// TestOutputHasItsAge: for how long a run has written nothing, by the file of the stream that was written last.
func TestOutputHasItsAge(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", "echo start; echo why >&2; exec sleep 600")
		require.Eventually(b, func() bool { o := b.read(guest.Offsets{}); return len(o.Out) > 0 && len(o.Err) > 0 }, tiertest.Limit(b), 10*time.Millisecond)
		for name, want := range map[string][3]time.Duration{"both an hour": {time.Hour, time.Hour, time.Hour}, "stderr a minute": {time.Hour, time.Minute, time.Minute}, "stdout now": {0, time.Hour, 0}} {
			for i, stream := range []string{"out.0", "err.0"} {
				at := time.Now().Add(-want[i])
				require.NoError(b, os.Chtimes(filepath.Join(b.home, ".sbx/runs/main", stream), at, at))
			}
			idle := b.read(guest.Offsets{}).Idle
			require.NotNil(b, idle, name)
			assert.LessOrEqual(b, *idle, want[2]+tiertest.Limit(b), name)
			assert.GreaterOrEqual(b, *idle, want[2]-2*time.Second, name)
		}
		future := time.Now().Add(time.Hour)
		require.NoError(b, os.Chtimes(filepath.Join(b.home, ".sbx/runs/main/out.0"), future, future))
		assert.Nil(b, b.read(guest.Offsets{}).Idle, "a clock that was changed shows nothing")
	})
}

// TestARemovedLogIsNoEmptyLog: a cleaner inside may remove the files.
func TestARemovedLogIsNoEmptyLog(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sleep", "600")
		assert.Empty(b, b.read(guest.Offsets{}).Out)
		require.NoError(b, os.Remove(filepath.Join(b.home, ".sbx/runs/main/out.0")))
		out, _ := b.run(guest.ReadOutputScript("", guest.Offsets{}))
		_, err := guest.ParseOutput(out, guest.Offsets{})
		require.ErrorIs(b, err, guest.ErrOutput)
		require.ErrorContains(b, err, "removed")
	})
}

func subshell(text string) string { return "(" + text + ")" }

func TestParseOutputRefusesWhatNoTextPrints(t *testing.T) {
	t.Parallel()
	for text, at := range map[string]guest.Offsets{
		"":                                       {},
		"Welcome to this image!":                 {},
		"state running\n":                        {},
		"state running\nout 0\nerr 0 0\n":        {},
		"state running\nout 0 4\nbase64\nYWJj\n": {},
		"state running\nout 0 4\nbase64\n!!!!\n.\nerr 0 0\n":           {},
		"state running\nout 0 4\nhex\n0g\n.\nerr 0 0\n":                {},
		"state running\nout x 4\nerr 0 0\n":                            {},
		"state running\nout 4 8\nerr 0 0\n":                            {Out: 5},
		"state running\nout 9 8\nerr 0 0\n":                            {Out: 9},
		"state running\nout 9223372036854775807 1\nerr 0 0\n":          {},
		"state running\nerr 0 0\nout 0 0\n":                            {},
		"state running\nout 0 3 \nbase64\nYWJj\n.\nout 0 0\n":          {},
		"state running\nout 0 3 \nbase64\nYWJj\n.\nerr -1 0\n":         {},
		"state running\nout 0 3 \nbase64\nYWJj\n.\nstate 0\nerr 0 0\n": {},
	} {
		_, err := guest.ParseOutput([]byte(text), at)
		require.ErrorIs(t, err, guest.ErrOutput, "%q", text)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	}
	got, err := guest.ParseOutput([]byte("state lost\nout 7 12 cut\nhex\n 61 62\n 63\n.\nerr 0 0 \n"), guest.Offsets{Out: 5})
	require.NoError(t, err)
	assert.Equal(t, guest.Output{Out: []byte("abc"), Next: guest.Offsets{Out: 10}, DroppedOut: 2, Cut: true, More: true, Ended: true, Lost: true}, got)
	for text, idle := range map[string]*time.Duration{"": nil, "written 9\n": nil, "written 9\nwritten\n": nil, "written 9\nwritten -1\n": nil, "written 9\nwritten x\n": nil, "written 9\nwritten 61\n": new(8 * time.Second), "written 0\nwritten 61\n": new(time.Duration(0))} {
		got, err := guest.ParseOutput([]byte("state running\nout 0 0\nerr 0 0\n"+text), guest.Offsets{})
		require.NoError(t, err)
		assert.Equal(t, idle, got.Idle, "%q", text)
	}
}

func FuzzParseOutput(f *testing.F) {
	f.Add([]byte("state ended\nout 0 3\nbase64\nYWJj\n.\nerr 0 0\n"), int64(0), int64(0))
	f.Add([]byte("state running\nout 7 12\nhex\n61\n.\nerr 5 9\nhex\n62\n.\n"), int64(5), int64(5))
	f.Fuzz(func(t *testing.T, text []byte, out, errs int64) {
		at := guest.Offsets{Out: out, Err: errs}
		got, err := guest.ParseOutput(text, at)
		if err != nil {
			require.ErrorIs(t, err, guest.ErrOutput)
			return
		}
		if got.Next.Out < out || got.Next.Err < errs || got.DroppedOut < 0 || got.DroppedErr < 0 {
			t.Fatalf("%q goes back: %+v", text, got)
		}
		if got.Next.Out != max(0, out)+got.DroppedOut+int64(len(got.Out)) {
			t.Fatalf("%q loses bytes: %+v", text, got)
		}
	})
}
