package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// sampleAt is a sample of a profile whose body says when it was taken.
func sampleAt(profile, subject string, at time.Time, size int) store.Sample {
	return store.Sample{Profile: profile, Subject: subject, At: at, Body: append(make([]byte, max(0, size-8)), at.Format("15:04:05")...)}
}

func timesOf(t *testing.T, s store.Store, profile, subject string) []string {
	t.Helper()
	list, err := s.Samples(t.Context(), store.SampleQuery{Profile: profile, Subject: subject})
	require.NoError(t, err)
	times := []string{}
	for _, s := range list {
		times = append(times, s.At.Format("15:04:05"))
		assert.Contains(t, string(s.Body), s.At.Format("15:04:05"))
	}
	return times
}

// testSamples: what was added comes back, the same moment is replaced, and the rules bound it.
func testSamples(t *testing.T, s subject) {
	t.Helper()
	now := exampleTime(20).UTC().Truncate(time.Hour)
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	var all []store.Sample
	for _, ago := range []time.Duration{0, time.Minute, 61 * time.Minute, 64 * time.Minute, 69 * time.Minute, 72 * time.Minute, 9 * 24 * time.Hour} {
		all = append(all, sampleAt("prod", "", at(ago), 100))
	}
	all = append(all, sampleAt("prod", "box", at(61*time.Minute), 100), sampleAt("prod", "box", at(62*time.Minute), 100), sampleAt("other", "", at(9*24*time.Hour), 100))
	require.NoError(t, s.AddSamples(t.Context(), all))
	require.NoError(t, s.AddSamples(t.Context(), all[:1]), "the same again")
	require.NoError(t, s.AddSamples(t.Context(), nil))
	assert.Len(t, timesOf(t, s, "prod", ""), 7)
	recent, err := s.Samples(t.Context(), store.SampleQuery{Profile: "prod", Since: at(time.Minute)})
	require.NoError(t, err)
	assert.Len(t, recent, 2)
	assert.True(t, recent[0].At.Before(recent[1].At), "oldest first")
	every, err := s.Samples(t.Context(), store.SampleQuery{Profile: "prod", AnySubject: true, Since: at(62 * time.Minute)})
	require.NoError(t, err)
	assert.Len(t, every, 5, "of the profile and of its sandbox")

	rules := store.SampleRules{Keep: 7 * 24 * time.Hour, Fine: time.Hour, Every: 10 * time.Minute, Bytes: 1 << 20}
	require.NoError(t, s.ThinSamples(t.Context(), "prod", now, rules))
	assert.Equal(t, []string{at(72 * time.Minute).Format("15:04:05"), at(69 * time.Minute).Format("15:04:05"), at(time.Minute).Format("15:04:05"), at(0).Format("15:04:05")},
		timesOf(t, s, "prod", ""), "one for ten minutes, all of the last hour")
	assert.Len(t, timesOf(t, s, "prod", "box"), 2, "those of a sandbox stay")
	assert.Len(t, timesOf(t, s, "other", ""), 1, "another profile has its own turn")

	rules.Bytes = 399
	require.NoError(t, s.ThinSamples(t.Context(), "prod", now, rules))
	assert.Len(t, timesOf(t, s, "prod", ""), 2, "the newest within the bytes")
	assert.Len(t, timesOf(t, s, "prod", "box"), 1)

	for name, bad := range map[string]store.Sample{
		"no profile": {At: now}, "no time": {Profile: "prod"}, "too large": {Profile: "prod", At: now, Body: make([]byte, store.MaxSampleBytes+1)},
	} {
		assert.Equal(t, fault.KindUsage, fault.KindOf(s.AddSamples(t.Context(), []store.Sample{bad})), name)
	}
	binary := store.Sample{Profile: "prod", Subject: "odd\x00id", At: now, Body: []byte{0, 0xff, 0x80, 'a'}}
	require.NoError(t, s.AddSamples(t.Context(), []store.Sample{binary}))
	back, err := s.Samples(t.Context(), store.SampleQuery{Profile: "prod", Subject: binary.Subject})
	require.NoError(t, err)
	require.Len(t, back, 1)
	assert.Equal(t, binary.Body, back[0].Body, "any bytes")
}
