package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/output"
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
	text := func() string {
		m.Update(newRound(r, nil))
		return m.feedText(m.feeds[0])
	}
	assert.Equal(t, "active -, stuck 1 over 10m, counters not read: HTTP 500, oldest 1m, calls paused after failures, next in 20s, clock 45s behind ours, 1 not judged, took 120ms, read 1s ago", text())
	assert.Contains(t, screen(m), "e2b 3, 1 stuck, counters not read  local 1")
	r.FiguresErr = nil
	r.Figures.Counts.Active, r.Figures.Counts.QuotaUsed = new(int64(3)), new(0.94)
	r.Connection.OpenUntil, r.Connection.Skew = noon(), 0
	assert.Equal(t, "active 3 of 20, stuck 1 over 10m, oldest 1m, 1 not judged, took 120ms, read 1s ago", text())
	assert.Contains(t, screen(m), "e2b 3, 94% of quota, 1 stuck  local 1")
	r.Err = fault.New(fault.KindUnavailable, "HTTP 503")
	assert.Contains(t, text(), "stale 1s: HTTP 503")
	assert.Contains(t, screen(m), "e2b STALE 1s: HTTP 503  local 1", "the line has room for the reason")
	r.Err = fault.New(fault.KindUnavailable, "%s", strings.Repeat("long ", 50))
	m.Update(newRound(r, nil))
	for _, line := range m.Frame() {
		assert.LessOrEqual(t, output.Width(line), m.width)
	}
}

// TestAProfileThatHangsIsSeen within three seconds, with its last figures.
func TestAProfileThatHangsIsSeen(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 80, 24)
	m.cells.Plain = true
	m.feeds[0].asking, m.feeds[0].asked = true, noon()
	m.now = func() time.Time { return noon().Add(time.Second) }
	assert.NotContains(t, screen(m), "no answer")
	m.now = func() time.Time { return noon().Add(3 * time.Second) }
	assert.Contains(t, screen(m), "e2b 3, 1 stuck, no answer for 3s  local 1")
}

// TestManyProfilesShareALine: those in trouble are named first, the rest is counted.
func TestManyProfilesShareALine(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 80, 24)
	m.cells.Plain = true
	for i := range 18 {
		m.feeds = append(m.feeds, &feed{profile: fmt.Sprintf("profile%02d", i)})
	}
	m.feeds[19].err = errors.New("it is away")
	line := m.profilesLine()
	assert.True(t, strings.HasPrefix(line, "profile17 not read"), line)
	assert.Regexp(t, `and \d+ more$`, line)
	assert.Len(t, m.Frame(), 24)
}
