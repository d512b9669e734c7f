package history_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/history"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

func failedAt(id string, at time.Time) history.Seen {
	return history.Seen{Sandbox: sandbox.Sandbox{Provider: "prod", ID: id, State: sandbox.StateFailed, EndedAt: at}, At: at, Reason: "it has ended"}
}

// TestWhatWasOnlyListedIsRemembered: also after later listings of the same hour, which have others.
func TestWhatWasOnlyListedIsRemembered(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 10, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	r := history.NewRecorder(func() time.Time { return now })
	listing := func(all ...history.Seen) {
		r.AddListed("prod", all)
		require.NoError(t, r.Flush(t.Context(), st))
	}
	listing(failedAt("aaaa", now.Add(-time.Minute)), failedAt("bbbb", now))
	now = now.Add(20 * time.Minute)
	listing(failedAt("bbbb", now.Add(-20*time.Minute)), failedAt("cccc", now))
	now = now.Add(2 * time.Hour)
	listing(failedAt("dddd", now), failedAt("old0", now.Add(-30*24*time.Hour)))
	for id, want := range map[string]bool{"aaaa": true, "bbbb": true, "cccc": true, "dddd": true, "eeee": false, "old0": false} {
		seen, known, err := history.LastSeen(t.Context(), st, ref(id))
		require.NoError(t, err)
		assert.Equal(t, want, known, id)
		assert.Equal(t, known, seen.Reason != "", id)
	}

	// what a look has seen is preferred, whichever is newer
	looked := failedAt("bbbb", now.Add(-3*time.Hour))
	looked.Logs = []string{"last words"}
	r.AddSeen(looked)
	listing(failedAt("bbbb", now))
	seen, _, err := history.LastSeen(t.Context(), st, ref("bbbb"))
	require.NoError(t, err)
	assert.Equal(t, []string{"last words"}, seen.Logs)

	many := make([]history.Seen, 1000)
	for i := range many {
		many[i] = failedAt(fmt.Sprintf("m%03d", i), now.Add(-time.Duration(i)*time.Second))
	}
	listing(many...)
	_, newest, err := history.LastSeen(t.Context(), st, ref("m000"))
	require.NoError(t, err)
	_, oldest, err := history.LastSeen(t.Context(), st, ref("m999"))
	require.NoError(t, err)
	assert.True(t, newest && !oldest, "the newest 200")
}

// TestAStuckSandboxHasOneRowForEachHour, whatever it is looked at; the newest look of the hour stays.
func TestAStuckSandboxHasOneRowForEachHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	r := history.NewRecorder(func() time.Time { return now })
	for i := range 90 {
		r.AddSeen(history.Seen{
			Sandbox: sandbox.Sandbox{Provider: "prod", ID: "aaaa", State: sandbox.StateRunning}, Live: true, Cause: sandbox.CauseSilent, Reason: strconv.Itoa(i),
			Causes: []history.Cause{{ID: "silent", Cause: sandbox.CauseSilent, Confidence: sandbox.Probable, WhyNot: "not seen"}},
		})
		require.NoError(t, r.Flush(t.Context(), st))
		now = now.Add(time.Minute)
	}
	rows, err := st.Samples(t.Context(), store.SampleQuery{Profile: "prod", Subject: "aaaa"})
	require.NoError(t, err)
	assert.Len(t, rows, 2)
	seen, known, err := history.LastSeen(t.Context(), st, ref("aaaa"))
	require.NoError(t, err)
	assert.True(t, known && seen.Live)
	assert.Equal(t, "89", seen.Reason)
	assert.Equal(t, time.Date(2026, 11, 20, 11, 29, 0, 0, time.UTC), seen.At.UTC(), "the time of the look")
	assert.Equal(t, "not seen", seen.Causes[0].WhyNot)

	r.AddListed("prod", []history.Seen{failedAt("aaaa", now)})
	require.NoError(t, r.Flush(t.Context(), st))
	seen, _, err = history.LastSeen(t.Context(), st, ref("aaaa"))
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateFailed, seen.Sandbox.State, "it has failed since")
	assert.False(t, seen.Live)
	assert.Equal(t, "not seen", seen.Causes[0].WhyNot)
}

// TestTimeLimitsOfATaskAreInTheLook.
func TestTimeLimitsOfATaskAreInTheLook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	r := history.NewRecorder(func() time.Time { return now })
	late, other := failedAt("aaaa", now), failedAt("bbbb", now)
	late.Sandbox.TaskID, late.Sandbox.Exit = "nightly", &sandbox.Exit{Class: sandbox.ClassTimeout}
	other.Sandbox.TaskID, other.Sandbox.Exit = "nightly", &sandbox.Exit{Class: sandbox.ClassAgentError}
	r.AddListed("prod", []history.Seen{late, other})
	require.NoError(t, r.Flush(t.Context(), st))
	looks, err := history.Looks(t.Context(), st, "prod", now.Add(-time.Hour))
	require.NoError(t, err)
	require.Len(t, looks, 1)
	assert.Equal(t, map[string]string{"aaaa": "nightly"}, looks[0].TimedOut)
}
