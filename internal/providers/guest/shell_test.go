//go:build linux

package guest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
)

// inside is a guest.Shell of a box.
func (b box) inside(_ context.Context, text string) ([]byte, int, error) {
	out, code := b.run(text)
	return out, code, nil
}

func TestThroughAShell(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		ctx := b.Context()
		_, err := guest.Exit(ctx, b.inside, "")
		require.ErrorIs(b, err, guest.ErrNoRun)
		assert.Equal(b, fault.KindNotFound, fault.KindOf(err))
		p := guest.Program{Args: []string{"sh", "-c", `echo one; echo two >&2; while [ ! -e go ]; do sleep 0.05; done; printf three; exit 5`}}
		require.NoError(b, guest.Start(ctx, b.inside, p))
		assert.Equal(b, fault.KindUsage, fault.KindOf(guest.Start(ctx, b.inside, p)))
		exit, err := guest.Exit(ctx, b.inside, "")
		require.NoError(b, err)
		assert.Nil(b, exit)
		var texts []string
		for line, err := range guest.Logs(ctx, b.inside, "", providers.LogQuery{Follow: true}) {
			require.NoError(b, err)
			assert.Equal(b, guest.Source, line.Source)
			if texts = append(texts, line.Stream+" "+line.Text); len(texts) == 2 {
				require.NoError(b, os.WriteFile(filepath.Join(b.home, "go"), nil, 0o600))
			}
		}
		assert.ElementsMatch(b, []string{"stdout one", "stderr two", "stdout three"}, texts)
		require.Eventually(b, func() bool {
			exit, err = guest.Exit(ctx, b.inside, "")
			return err == nil && exit != nil && *exit.Code == 5
		}, patient, 10*time.Millisecond)
		u, err := guest.Usage(ctx, b.inside, time.Now())
		require.NoError(b, err)
		require.NotNil(b, u.MemoryBytes)
		assert.Positive(b, *u.MemoryBytes)
		require.NotNil(b, u.CPUSeconds)
		assert.Positive(b, *u.CPUSeconds)
		assert.Contains(b, u.Source, "probe command (")
	})
}

// answers is a Shell with these answers, the last one repeated.
type answers struct {
	printed []string
	code    int
	err     error
	asked   int
}

func (a *answers) shell(context.Context, string) ([]byte, int, error) {
	i := min(a.asked, len(a.printed)-1)
	a.asked++
	if i < 0 {
		return nil, a.code, a.err
	}
	return []byte(a.printed[i]), a.code, a.err
}

// printed is the output of ReadOutputScript for stdout, with nothing on stderr.
func printed(state string, from int, data string, more int, cut string) string {
	head := fmt.Sprintf("state %s\nout %d %d %s\n", state, from, from+len(data)+more, cut)
	if data != "" {
		head += "base64\n" + base64.StdEncoding.EncodeToString([]byte(data)) + "\n.\n"
	}
	return head + "err 0 0\n"
}

func TestLogsOfPieces(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	for name, tc := range map[string]struct {
		printed []string
		query   providers.LogQuery
		want    []string // with ~ before a line that is not whole
	}{
		"pieces join":            {[]string{printed("running", 0, "a\nb", 1, ""), printed("ended", 3, "c\n\nd", 0, "")}, providers.LogQuery{}, []string{"a", "bc", "", "d"}},
		"follow":                 {[]string{printed("running", 0, "a\nb", 0, ""), printed("running", 3, "", 0, ""), printed("ended", 3, "c", 0, "")}, providers.LogQuery{Follow: true}, []string{"a", "bc"}},
		"tail counts a half one": {[]string{printed("ended", 0, "a\nb\nc", 0, "")}, providers.LogQuery{Tail: 2}, []string{"b", "c"}},
		"a gap tears lines":      {[]string{printed("running", 0, "a\nb", 1, ""), printed("ended", 9, "y\nz\n", 0, "")}, providers.LogQuery{}, []string{"a", "~b", "sbx: older output was dropped", "~y", "z"}},
		"old output is gone":     {[]string{printed("ended", 5, "y\n", 0, "")}, providers.LogQuery{}, []string{"sbx: older output was dropped", "~y"}},
		"what was not written":   {[]string{printed("running", 0, "a\n", 1, "cut"), printed("ended", 2, "b\n", 0, "cut")}, providers.LogQuery{}, []string{"sbx: some output could not be stored: the disk may be full", "a", "b"}},
		"carriage returns":       {[]string{printed("ended", 0, "a\r\nb\rc\r\n", 0, "")}, providers.LogQuery{}, []string{"a", "b\rc"}},
		"a very long line":       {[]string{printed("ended", 0, long+"yy\nz\n", 0, "")}, providers.LogQuery{}, []string{"~" + long, "~yy", "z"}},
		"a long line, whole":     {[]string{printed("ended", 0, long+"\nz\n", 0, "")}, providers.LogQuery{}, []string{long, "z"}},
		"nothing":                {[]string{printed("ended", 0, "", 0, "")}, providers.LogQuery{}, nil},
		"a time to come":         {[]string{printed("ended", 0, "a\n", 0, "")}, providers.LogQuery{Since: time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)}, nil},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var got []string
			for line, err := range guest.Logs(t.Context(), (&answers{printed: tc.printed}).shell, "", tc.query) {
				require.NoError(t, err)
				text := line.Text
				if line.Truncated {
					text = "~" + text
				}
				if line.Stream == "sbx" {
					text = "sbx: " + text
				}
				got = append(got, text)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// TestFollowingSlowsDown: 0.25 s, doubling to 4 s, and at once fast again.
func TestFollowingSlowsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &answers{printed: []string{printed("running", 0, "", 0, "")}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range guest.Logs(ctx, a.shell, "", providers.LogQuery{Follow: true}) {
			assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
		}
		assert.InDelta(t, 19, a.asked, 1)
	})
}

func TestWhatAShellDoesWrong(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, a := range map[string]*answers{
		"error":   {err: broken},
		"garbage": {printed: []string{"Welcome!\n"}},
		"no run":  {code: guest.ExitMissing},
	} {
		want := map[string]error{"error": broken, "garbage": guest.ErrOutput, "no run": guest.ErrNoRun}[name]
		for _, err := range guest.Logs(t.Context(), a.shell, "", providers.LogQuery{}) {
			require.ErrorIs(t, err, want, name)
		}
		assert.Equal(t, map[string]int{"error": 1, "garbage": 2, "no run": 1}[name], a.asked, "half an answer is asked for once more")
		_, err := guest.Exit(t.Context(), a.shell, "")
		require.ErrorIs(t, err, want, name)
		if name != "no run" {
			_, err = guest.Usage(t.Context(), a.shell, time.Now())
			require.ErrorIs(t, err, want, name)
		}
	}
	for code, kind := range map[int]fault.Kind{
		guest.ExitTaken: fault.KindUsage, guest.ExitUnseen: fault.KindUnavailable, guest.ExitFailed: fault.KindLauncher, 0: fault.KindLauncher,
	} {
		err := guest.Start(t.Context(), (&answers{code: code}).shell, guest.Program{Args: []string{"true"}})
		assert.Equal(t, kind, fault.KindOf(err), "%d", code)
	}
}

func TestAReaderMayLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &answers{printed: []string{printed("running", 0, "a\nb\n", 0, ""), printed("running", 4, "c\nd\n", 0, "")}}
		var got []sandbox.LogLine
		for line, err := range guest.Logs(t.Context(), a.shell, "", providers.LogQuery{Follow: true}) {
			require.NoError(t, err)
			if got = append(got, line); len(got) == 3 {
				break
			}
		}
		assert.Equal(t, 2, a.asked)
	})
}

func TestFollowingEndsWithItsSandbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &answers{printed: []string{printed("running", 0, "a\nb", 0, "")}}
		var got []string
		for line, err := range guest.Logs(t.Context(), a.shell, "", providers.LogQuery{Follow: true}) {
			require.NoError(t, err)
			got = append(got, line.Text)
			a.err = fault.New(fault.KindGone, "expired")
		}
		assert.Equal(t, []string{"a", "b"}, got)
	})
}
