package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
)

// TestTheHeaderSaysHowAProviderAnswers: the most important first, so that a narrow screen has that.
func TestTheHeaderSaysHowAProviderAnswers(t *testing.T) {
	t.Parallel()
	s := newScene()
	r := s.rounds["e2b"]
	r.Profile, r.FiguresErr = "e2b", fault.New(fault.KindUnavailable, "HTTP 500")
	r.Figures.Counts.Active = nil
	r.Connection.Skew, r.Connection.OpenUntil = -45*time.Second, noon().Add(19500*time.Millisecond)
	m := board(t, s, 200, 40)
	m.cells.Plain = true
	header := func(width int) string {
		m.width = width
		m.Update(roundMsg{r})
		return m.feedTextIn(m.feeds[0], width-6)
	}
	for width, want := range map[int]string{
		200: "e2b active -  stuck 1 over 10m  counters not read: HTTP 500  oldest 1m  breaker open, tries again in 20s  clock 45s behind ours  1 not judged  took 120ms  read 1s ago",
		100: "e2b active -  stuck 1 over 10m  counters not read: HTTP 500  oldest 1m  breaker open, tries again in 20s",
	} {
		assert.Equal(t, want, header(width), "%d cells", width)
	}
	r.FiguresErr = nil
	r.Figures.Counts.Active = new(int64(3))
	assert.Equal(t, "e2b active 3 of 20  stuck 1 over 10m  oldest 1m  breaker open, tries again in 20s", header(80))
	r.Connection.OpenUntil, r.Connection.Skew = noon(), 0
	assert.Equal(t, "e2b active 3 of 20  stuck 1 over 10m  oldest 1m  1 not judged  took 120ms  read 1s ago", header(92), "it fits to the cell")
	r.Connection.Skew = -45 * time.Second
	r.Err = fault.New(fault.KindUnavailable, "HTTP 503")
	assert.Equal(t, "e2b active 3 of 20  stuck 1 over 10m  stale 1s: HTTP 503  oldest 1m", header(80))
	r.Err, r.Connection.OpenUntil = nil, noon()
	assert.Equal(t, "e2b active 3 of 20  stuck 1 over 10m  oldest 1m  clock 45s behind ours", header(80))
}
