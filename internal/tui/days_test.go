package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// TestAClockThatLeaps keeps no profile from being read, and no look from being repeated.
func TestAClockThatLeaps(t *testing.T) {
	t.Parallel()
	for _, leap := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour} {
		s, now := newScene(), noon()
		m := NewModel(t.Context(), s, func() time.Time { return now }, "sbx", output.Cells{})
		require.NotNil(t, m.pollDue(now))
		for _, name := range s.Profiles() {
			m.Update(newRound(s.Round(t.Context(), name), nil))
		}
		m.looking = false
		m.Update(m.lookDue(now)())
		require.Nil(t, m.lookDue(now))
		m.looking = false
		now = now.Add(leap)
		assert.NotNil(t, m.pollDue(now), "%s", leap)
		assert.NotNil(t, m.lookDue(now), "%s", leap)
		for _, line := range m.Frame() {
			assert.LessOrEqual(t, output.Width(line), m.width)
			assert.NotContains(t, line, "-24h")
		}
	}
}

// manyProfiles is a scene of 20 profiles, of which only the first answers.
type manyProfiles struct{ *scene }

func (manyProfiles) Profiles() []string {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("profile-%02d", i))
	}
	return names
}

func (s manyProfiles) Round(ctx context.Context, profile string) look.LiveRound {
	if !strings.HasSuffix(profile, "00") {
		<-ctx.Done()
	}
	r := s.scene.Round(ctx, "e2b")
	r.Profile = profile
	return r
}

// TestWhatAnotherHasEndedLosesItsMark, and a plan is about what is left.
func TestWhatAnotherHasEndedLosesItsMark(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.plan = planOf(1, "1")
	m := board(t, s, 80, 24)
	press(m, "a")
	require.Len(t, m.marked, 4)
	r := s.Round(t.Context(), "e2b")
	r.Rows = r.Rows[1:]
	m.Update(newRound(r, nil))
	require.Len(t, m.marked, 3)
	open(t, m, "x")
	require.Len(t, s.boxes, 3)
	for _, box := range s.boxes {
		assert.NotEqual(t, "i0a4k2m9p1r7t3v5x8z2b", box.ID)
	}
}

// TestANameOf200LettersWithEscapes moves nothing on the screen.
func TestANameOf200LettersWithEscapes(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.rounds["e2b"].Rows[0].Sandbox.Name = strings.Repeat("\x1b[2Jname\t\u202e日本", 20)
	s.rounds["e2b"].Rows[0].Sandbox.Labels = map[string]string{"\x1b]0;x\a": strings.Repeat("\n", 200)}
	for _, size := range [][2]int{{60, 18}, {80, 24}, {120, 40}} {
		m := board(t, s, size[0], size[1])
		for _, key := range []string{"", "2", "6", "7", "esc", "space"} {
			if key != "" {
				press(m, key)
			}
			lines := m.Frame()
			require.Len(t, lines, size[1])
			for _, line := range lines {
				assert.LessOrEqual(t, output.Width(line), size[0])
				assert.NotContains(t, line, "\x1b[2J")
				assert.NotContains(t, line, "\x1b]")
				assert.NotContains(t, line, "\u202e")
			}
		}
	}
}

// TestTwentyProfiles of which all but one hang: each is asked once, and the one that answers is shown, worked
// with and asked again meanwhile.
func TestTwentyProfiles(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		s := manyProfiles{newScene()}
		m := NewModel(t.Context(), s, noon, "sbx", output.Cells{Plain: true})
		m.width, m.height = size[0], size[1]
		require.NotNil(t, m.pollDue(noon()))
		m.Update(newRound(s.Round(t.Context(), "profile-00"), nil))
		asked := 0
		for _, f := range m.feeds {
			if f.asking {
				asked++
			}
		}
		assert.Equal(t, 19, asked)
		assert.NotNil(t, m.pollDue(noon().Add(pollFocused)), "only the one that has answered")
		press(m, "j", "tab", "tab", "l", "esc")
		frame := screen(m)
		assert.Contains(t, frame, " more")
		assert.Contains(t, frame, "profile-01 reading")
		assert.Len(t, m.Frame(), size[1])
		m.tab = tabAll
		m.rebuild()
		assert.NotEmpty(t, m.shown())
		assert.Equal(t, sandbox.StateRunning, m.shown()[0].State)
	}
}
