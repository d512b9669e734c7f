package providertest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func lineTexts(lines []sandbox.LogLine) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, l.Text)
	}
	return out
}

func checkLogs(t T, s *Subject) {
	id := s.startWriter(t, "one", "two", "three")
	got, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{})
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, lineTexts(got))
	for i, l := range got {
		assert.NotContains(t, l.Text, "\n", "a line has no line end")
		if i > 0 && !l.At.IsZero() {
			assert.False(t, l.At.Before(got[i-1].At), "line %d is older than the one before", i)
		}
	}
}

func checkLogsTail(t T, s *Subject) {
	id := s.startWriter(t, "one", "two", "three")
	for n, want := range map[int][]string{1: {"three"}, 2: {"two", "three"}, 9: {"one", "two", "three"}} {
		got, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{Tail: n})
		require.NoError(t, err)
		assert.Equal(t, want, lineTexts(got), "tail %d", n)
	}
}

func checkLogsSince(t T, s *Subject) {
	id := s.startWriter(t, "one", "two")
	past, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{Since: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two"}, lineTexts(past))
	if len(past) > 0 && past[0].At.IsZero() {
		return // a line without a time is not old
	}
	none, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{Since: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	assert.Empty(t, none)
}

func checkLogsUnknown(t T, s *Subject) {
	got, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), unknownID, providers.LogQuery{})
	assert.Empty(t, got)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

func checkFollowEnd(t T, s *Subject) {
	id := s.startWriter(t, "one", "two")
	r := requireAbility[providers.LogReader](t, s)
	first := make(chan struct{})
	var got []sandbox.LogLine
	var err error
	finished := make(chan bool, 1)
	ctx, cancel := context.WithCancel(s.callContext(t))
	defer cancel()
	go func() {
		finished <- s.returnsInTime(func() {
			for line, e := range r.Logs(ctx, id, providers.LogQuery{Follow: true}) {
				if err = e; e != nil {
					return
				}
				if got = append(got, line); len(got) == 1 {
					close(first)
				}
			}
		})
	}()
	require.True(t, s.returnsInTime(func() { <-first }), "nothing comes while following")
	s.endSandbox(t, id)
	require.True(t, <-finished, "follow goes on after the sandbox has ended")
	require.NoError(t, err, "the end of the sandbox is a plain end of its log")
	require.GreaterOrEqual(t, len(got), 2)
	assert.Equal(t, []string{"one", "two"}, lineTexts(got)[:2])
}

func checkFollowCanceled(t T, s *Subject) {
	id := s.startWriter(t, "one")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	require.True(t, s.returnsInTime(func() {
		for _, last = range requireAbility[providers.LogReader](t, s).Logs(ctx, id, providers.LogQuery{Follow: true}) {
			cancel()
		}
	}), "follow goes on after ctx has ended")
	assert.Equal(t, fault.KindCanceled, fault.KindOf(last), "%v", last)
}
