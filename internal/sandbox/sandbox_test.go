package sandbox_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "10m": 10 * time.Minute, "2h": 2 * time.Hour, "3d": 72 * time.Hour, "1w": 168 * time.Hour,
		"1h30m": 90 * time.Minute, "1d12h": 36 * time.Hour, "1w2d3h4m5s": 9*24*time.Hour + 3*time.Hour + 4*time.Minute + 5*time.Second,
		"200ms": 200 * time.Millisecond, "1.5h": 90 * time.Minute, "0.5s": 500 * time.Millisecond, "1m500ms": time.Minute + 500*time.Millisecond, "1.25d": 30 * time.Hour,
		"0.001ms": time.Microsecond, "1.0000000001s": time.Second,
		"0h5m": 5 * time.Minute, "3650d": 3650 * 24 * time.Hour,
	} {
		got, err := sandbox.ParseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "0", "0s", "0h0m", "10", "-5m", "+5m", "5", "m", "5x", "1.h", ".5h", "1..5h", "1.5.5h", "1,5h", "5us", "5ns", "5m5m", "0.00000000001s", "5s5m", "5m 5s", " 5m", "5m ", "10minutes", "3651d", "1w3650d",
		"99999999999999999999s", "９s", "1h30",
	} {
		_, err := sandbox.ParseDuration(text)
		require.ErrorIs(t, err, sandbox.ErrMeasure, "%q is accepted", text)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"", "10m", "1h30m", "-1s", "9999999999999999w", "1d1d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := sandbox.ParseDuration(text)
		if err != nil {
			return
		}
		if d <= 0 || d > 3650*24*time.Hour {
			t.Fatalf("%q gives %v", text, d)
		}
		if d < time.Second { // FormatDuration writes whole seconds
			return
		}
		again, err := sandbox.ParseDuration(sandbox.FormatDuration(d))
		if err != nil || again > d || d-again > time.Hour*24*7 {
			t.Fatalf("%q = %v is written %q, read %v, %v", text, d, sandbox.FormatDuration(d), again, err)
		}
	})
}

func TestFormatDurationKeepsTwoUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s", time.Hour: "1h",
		25*time.Hour + 30*time.Minute: "1d1h", 8 * 24 * time.Hour: "1w1d",
	} {
		assert.Equal(t, want, sandbox.FormatDuration(d))
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"64K": 64 << 10, "512M": 512 << 20, "2G": 2 << 30,
		"512MB": 512 << 20, "512Mi": 512 << 20, "512MiB": 512 << 20, "512mb": 512 << 20, "512m": 512 << 20, "64Ki": 64 << 10, "2GB": 2 << 30, "1.5G": 3 << 29, "0.5Gi": 1 << 29,
	} {
		got, err := sandbox.ParseSize(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "512", "0M", "-1M", "+1M", "M", "1T", "1 M", "512B", "512i", "512MiM", "512bM", "1.G", "1e3M", "0.0000000001K", "99999999999999999999G", "2000000G", "１M"} {
		_, err := sandbox.ParseSize(text)
		require.ErrorIs(t, err, sandbox.ErrMeasure, "%q is accepted", text)
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("512M")
	f.Add("9223372036854775807G")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := sandbox.ParseSize(text); err == nil && (n <= 0 || n > 1<<50) {
			t.Fatalf("%q gives %d", text, n)
		}
	})
}

// TestParseMoment: what a person writes, at noon of a Friday.
func TestParseFuture(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("somewhere", 3600)) // 11:00 UTC
	for text, want := range map[string]time.Time{
		"2026-11-20T12:00:00Z": time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), "2026-11-20T15:00:00+02:00": time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC),
		"2026-11-21": time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), "18:00": time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC),
		"18:00:30": time.Date(2026, 11, 20, 18, 0, 30, 0, time.UTC), "2026-11-20 18:30": time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC),
	} {
		at, err := sandbox.ParseFuture(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, at, text)
	}
	for text, says := range map[string]string{
		"10:00": "it has passed: it is now 2026-11-20T11:00:00Z", "2026-11-20": "it has passed", "1h": "it is a duration", "tomorrow": "it cannot be read as one",
		"": "is a shell variable unset?", "2056-01-01": "more than ten years away", "11:00": "it has passed",
	} {
		_, err := sandbox.ParseFuture(text, now)
		require.ErrorContains(t, err, says, text)
	}
}

func TestParseMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("somewhere", 3600)) // 11:00 UTC
	at := func(day, hour, minute, second int) time.Time {
		return time.Date(2026, 11, day, hour, minute, second, 0, time.UTC)
	}
	for text, want := range map[string]time.Time{
		"2026-11-20T12:00:00Z": at(20, 12, 0, 0), "2026-11-20T12:00:00+02:00": at(20, 10, 0, 0),
		"2026-11-19": at(19, 0, 0, 0), "2026-11-19T08:30": at(19, 8, 30, 0), "2026-11-19 08:30:15": at(19, 8, 30, 15), "2026-11-19T08:30:15": at(19, 8, 30, 15), "2026-11-19 08:30": at(19, 8, 30, 0),
		"2026-11-19T12:00Z": at(19, 12, 0, 0), "2026-11-19T12:00+02:00": at(19, 10, 0, 0), "Yesterday": at(19, 0, 0, 0), "TODAY": at(20, 0, 0, 0),
		"today": at(20, 0, 0, 0), "yesterday": at(19, 0, 0, 0), "10:45": at(20, 10, 45, 0), "10:45:30": at(20, 10, 45, 30), "11:00": at(20, 11, 0, 0),
		"1h": at(20, 10, 0, 0), "1.5h": at(20, 9, 30, 0), "1w": at(13, 11, 0, 0),
	} {
		got, err := sandbox.ParseMoment(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, why := range map[string]string{
		"": "empty", "12": "the unit is missing", "1.5": "the unit is missing", "11:01": "write it like 2026-11-19T11:01",
		"now": "everything was created before now", "25:00": "neither a time nor a duration", "2026-13-01": "neither", "tomorrow": "neither", "-1h": "neither", "0s": "neither",
	} {
		_, err := sandbox.ParseMoment(text, now)
		require.ErrorIs(t, err, sandbox.ErrMeasure, text)
		assert.ErrorContains(t, err, why, text)
	}
}

func TestParseAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"10m": 10 * time.Minute, "yesterday": 36 * time.Hour, "11:30": 30 * time.Minute, "2026-11-20T11:59:59.5Z": 500 * time.Millisecond} {
		got, err := sandbox.ParseAge(text, now)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, why := range map[string]string{
		"": "it is empty", "soon": `"soon" is not a duration`, "25:00": "neither a time", "10": `"10" is not a duration: the unit is missing`, "2026-11-21": "not in the past", "12:00": "not in the past", "2010-01-01": "longer than ten years",
	} {
		_, err := sandbox.ParseAge(text, now)
		require.ErrorIs(t, err, sandbox.ErrMeasure, text)
		assert.ErrorContains(t, err, why, text)
	}
}

func FuzzParseMoment(f *testing.F) {
	for _, seed := range []string{"", "1h", "yesterday", "12:00", "2026-11-20", "2026-11-20T12:00:00Z", "99999-01-01", "24:00", "1.5"} {
		f.Add(seed)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := sandbox.ParseMoment(text, now)
		if err != nil && !errors.Is(err, sandbox.ErrMeasure) {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil && (at.Location() != time.UTC || at.Year() < 0 || at.Year() > 9999+1) {
			t.Fatalf("%q gives %v", text, at)
		}
		age, err := sandbox.ParseAge(text, now)
		if err == nil && (age <= 0 || age > 3650*24*time.Hour) {
			t.Fatalf("%q is an age of %v", text, age)
		}
	})
}

func TestParseRef(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]sandbox.Ref{
		"abc": {ID: "abc"}, "prod/abc": {Provider: "prod", ID: "abc"}, "i-0_9.z:1": {ID: "i-0_9.z:1"}, "local/ü": {Provider: "local", ID: "ü"},
	} {
		got, err := sandbox.ParseRef(word)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, word, got.String())
		assert.Equal(t, want.Provider == "", got.Bare())
	}
	for _, word := range []string{
		"", "/", "a/", "/a", "a/b/c", "..", "a/..", ".", "-rf", "a/-x", "a b", "a\tb", "a\n", "a\x1b[31m", `a\b`, "a?b", "a#b", "a%2fb", "a*", "\xff", "a\x7f", "a\u0085", strings.Repeat("x", 600),
	} {
		_, err := sandbox.ParseRef(word)
		require.ErrorIs(t, err, sandbox.ErrRef, "%q is accepted", word)
	}
}

// TestARecordedReferenceIsReadAsItWasWritten: also one that a user may not type, since a provider
// may list it.
func TestARecordedReferenceIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"abc", "-rf", "a/b", "..", "a b", "a%2fb", strings.Repeat("x", 600)} {
		want := map[sandbox.Ref]sandbox.Ref{{Provider: "prod", ID: id}: {Provider: "prod", ID: id}}
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var got map[sandbox.Ref]sandbox.Ref
		require.NoError(t, json.Unmarshal(text, &got))
		assert.Equal(t, want, got)
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add("prod/abc")
	f.Add("../../etc")
	f.Fuzz(func(t *testing.T, word string) {
		ref, err := sandbox.ParseRef(word)
		if err != nil {
			return
		}
		if ref.String() != word || strings.ContainsAny(ref.ID, "/\\\x00\n\x1b") || ref.ID == ".." {
			t.Fatalf("%q gives %+v", word, ref)
		}
	})
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		s      sandbox.Sandbox
		age    time.Duration
		source sandbox.AgeSource
	}{
		"created":    {sandbox.Sandbox{CreatedAt: ago(time.Hour), StartedAt: ago(time.Minute)}, time.Hour, sandbox.AgeCreatedAt},
		"started":    {sandbox.Sandbox{StartedAt: ago(time.Minute)}, time.Minute, sandbox.AgeStartedAt},
		"first seen": {sandbox.Sandbox{FirstSeenAt: ago(time.Second)}, time.Second, sandbox.AgeFirstSeen},
		"unknown":    {sandbox.Sandbox{}, 0, sandbox.AgeUnknown},
		"future":     {sandbox.Sandbox{CreatedAt: ago(-time.Second), StartedAt: ago(time.Hour)}, 0, sandbox.AgeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			age, source := tc.s.Age(now)
			assert.Equal(t, tc.age, age)
			assert.Equal(t, tc.source, source)
		})
	}
	_, known := sandbox.Sandbox{LastActivityAt: now.Add(time.Minute)}.Idle(now)
	assert.False(t, known, "activity in the future proves nothing")
	idle, known := sandbox.Sandbox{LastActivityAt: ago(time.Minute)}.Idle(now)
	assert.True(t, known)
	assert.InDelta(t, 60, idle.Seconds(), math.SmallestNonzeroFloat64)
}

func TestClosedLists(t *testing.T) {
	t.Parallel()
	for _, s := range sandbox.States() {
		got, ok := sandbox.ParseState(string(s))
		assert.True(t, ok)
		assert.Equal(t, s, got)
	}
	_, ok := sandbox.ParseState("RUNNING")
	assert.False(t, ok)
	assert.True(t, sandbox.StateFailed.Ended())
	assert.False(t, sandbox.StateStopped.Ended(), "stopped is an end only where the plan said stop")
	assert.Len(t, sandbox.Outcomes(), 8)
	assert.True(t, sandbox.EnforcementHybrid.Hard())
	assert.False(t, sandbox.EnforcementWatch.Hard())
	assert.Equal(t, sandbox.True, sandbox.VerdictOf(true))
	assert.Equal(t, sandbox.False, sandbox.VerdictOf(false))
	for v, opposite := range map[sandbox.Verdict]sandbox.Verdict{"true": "false", "false": "true", "unknown": "unknown", "": "unknown"} {
		assert.Equal(t, opposite, v.Negated())
	}
	s := sandbox.Sandbox{Provider: "p", ID: "x", Labels: map[string]string{"a": "1"}}
	c := s.Clone()
	c.Labels["a"] = "2"
	assert.Equal(t, "1", s.Labels["a"])
	assert.Equal(t, "p/x", s.Ref().String())
}

func TestKept(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for label, want := range map[[2]string]bool{
		{"sbx/keep", "true"}: true, {"sbx/keep", "2026-11-20T12:00:01Z"}: true, {"sbx/keep", "2026-11-20T13:00:00+01:00"}: false,
		{"sbx/keep", "2026-11-20T11:59:59Z"}: false, {"sbx/keep", ""}: true, {"sbx/keep", "false"}: true, {"sbx/keep", "tomorrow"}: true,
		{"SBX/KEEP", "true"}: true, {" sbx/Keep ", "true"}: true, {"sbx/keeper", "true"}: false, {"keep", "true"}: false,
	} {
		if got := sandbox.Kept(map[string]string{label[0]: label[1], "team": "a"}, now) != ""; got != want {
			t.Errorf("%q protects: %v, want %v", label, got, want)
		}
	}
	if sandbox.Kept(nil, now) != "" {
		t.Error("no label protects nothing")
	}
}

func TestFormatElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0ms", 250 * time.Millisecond: "250ms", 1500 * time.Millisecond: "1.5s", 9 * time.Second: "9s", 9990 * time.Millisecond: "9.9s",
		36500 * time.Millisecond: "36s", 90 * time.Minute: "1h30m", -1500 * time.Millisecond: "-1.5s",
	} {
		assert.Equal(t, want, sandbox.FormatElapsed(d))
	}
}

func TestFormatExactDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1500 * time.Millisecond: "1.5s", time.Second: "1s", time.Minute: "1m", time.Hour: "1h",
		time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", 10 * time.Second: "10s", 20 * time.Minute: "20m",
	} {
		assert.Equal(t, want, sandbox.FormatExactDuration(d))
	}
}
