package publish

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestMarkersAreReadAsWritten(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0).UTC()
	for _, m := range []Mark{
		{Verdict: Published, Task: "t-1", Fence: 9, Commit: strings.Repeat("a", 40), Branch: "agent/x", At: at},
		{Verdict: Published, Task: "t", Fence: -1, Commit: strings.Repeat("0", 64), Branch: "größe", At: at},
		{Verdict: Stopped, Task: "t", By: "ann@host: pid 3", At: at},
		{Verdict: Stopped, Task: "t", By: "", At: at},
	} {
		got, err := parseMark(m.commitMessage())
		require.NoError(t, err, m.commitMessage())
		assert.Equal(t, m, got)
	}
}

func TestMarkerKeepsToItsLines(t *testing.T) {
	t.Parallel()
	m := Mark{Verdict: Stopped, Task: "t", By: "ann\ncommit: x\n\nsbx published\r\u2028\u202e" + strings.Repeat("é", 300), At: time.Unix(0, 0).UTC()}
	got, err := parseMark(m.commitMessage())
	require.NoError(t, err)
	assert.Equal(t, Stopped, got.Verdict)
	assert.Empty(t, got.Commit)
	assert.LessOrEqual(t, len(got.By), maxBy)
}

func TestForeignMarkers(t *testing.T) {
	t.Parallel()
	good := Mark{Verdict: Published, Task: "t", Fence: 9, Commit: strings.Repeat("a", 40), Branch: "b", At: time.Unix(0, 0)}.commitMessage()
	_, err := parseMark(good + "later: a key of tomorrow\n")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"empty": "", "a commit": "Fix the build\n\nIt was broken.\n", "no body": "sbx published\n", "other word": strings.Replace(good, "published", "opened", 1),
		"no task": strings.Replace(good, "task: t\n", "", 1), "bad task": strings.Replace(good, "task: t", "task: ../t", 1), "no commit": strings.Replace(good, "commit: a", "commit: z", 1),
		"bad fence": strings.Replace(good, "fence: 9", "fence: nine", 1), "bad branch": strings.Replace(good, "branch: b", "branch: -b", 1), "bad time": strings.Replace(good, "at: 1970", "at: soon", 1),
		"twice": good + "task: u\n", "broken line": good + "what\n", "too long": good + "x: " + strings.Repeat("y", maxMarker) + "\n", "cut": good[:len(good)/2],
	} {
		_, err := parseMark(text)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%s: %v", name, err)
	}
}

func FuzzMarker(f *testing.F) {
	f.Add(Mark{Verdict: Published, Task: "t", Fence: 9, Commit: strings.Repeat("a", 40), Branch: "b", At: time.Unix(0, 0)}.commitMessage(), "ann")
	f.Add(Mark{Verdict: Stopped, Task: "t", By: "ann", At: time.Unix(0, 0)}.commitMessage(), "a\nb")
	f.Add("sbx stopped\n\n", "\u2028")
	f.Fuzz(func(t *testing.T, text, by string) {
		if m, err := parseMark(text); err == nil {
			m.By = oneLine(m.By, maxBy)
			again, err := parseMark(m.commitMessage())
			if err != nil || again != m {
				t.Fatalf("%q: %+v is written as %q: %v", text, m, m.commitMessage(), err)
			}
		}
		m, err := parseMark(Mark{Verdict: Stopped, Task: "t", By: by, At: time.Unix(0, 0)}.commitMessage())
		if err != nil || m.Verdict != Stopped || m.Commit != "" {
			t.Fatalf("%q makes %+v: %v", by, m, err)
		}
	})
}
