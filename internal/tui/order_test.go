package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
)

// TestOrders: each order, with what is not known where it is seen or out of the way, and equal rows by reference.
func TestOrders(t *testing.T) {
	t.Parallel()
	box := func(id string, age, idle time.Duration) look.LiveRow {
		j := look.LiveRow{Sandbox: &sandbox.Sandbox{Provider: "e2b", ID: id, State: sandbox.StateRunning}, At: noon()}
		if age >= 0 {
			j.Sandbox.CreatedAt = noon().Add(-age)
		}
		if idle >= 0 {
			j.Sandbox.LastActivityAt = noon().Add(-idle)
		}
		return j
	}
	s := newScene()
	r := s.rounds["e2b"]
	r.Rows = []look.LiveRow{box("d", time.Hour, 0), box("a", -1, -1), box("c", time.Minute, 2*time.Minute), box("b", time.Minute, time.Minute)}
	s.rounds["e2b"], s.rounds["local"] = r, s.rounds["none"]
	m := board(t, s, 80, 24)
	for _, tc := range []struct {
		order order
		want  string
	}{{byProblem, "adbc"}, {byAge, "adbc"}, {byIdle, "cbda"}, {byRef, "abcd"}} {
		m.order = tc.order
		for _, m.reverse = range []bool{false, true} {
			m.rebuild()
			got := ""
			for _, r := range m.rows {
				if got += r.ID; m.reverse {
					got = r.ID + got[:len(got)-1]
				}
			}
			assert.Equal(t, tc.want, got, "%s, reversed: %t", tc.order.title(), m.reverse)
		}
	}
}

// TestTheFirstKeyHoldsTheCursor on its sandbox, also at the first row; until then the worst one is under it.
func TestTheFirstKeyHoldsTheCursor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keys []string
		want string
	}{
		"no key":        {nil, "zzzz"},
		"down and up":   {[]string{"j", "k"}, "aaaa"},
		"a page":        {[]string{"enter", "esc"}, "aaaa"},
		"a tab":         {[]string{"j", "k", "tab", "shift+tab"}, "zzzz"},
		"another order": {[]string{"j", "o", "o", "o", "o"}, "zzzz"},
	} {
		s := newScene()
		box := func(id string, age time.Duration) look.LiveRow { return boxOf("e2b", id, "", age, stuckVerdict()) }
		r := s.rounds["e2b"]
		r.Profile, r.Rows = "e2b", []look.LiveRow{box("aaaa", time.Hour), box("bbbb", time.Minute)}
		s.rounds["e2b"], s.rounds["local"] = r, s.rounds["none"]
		m := board(t, s, 80, 24)
		press(m, tc.keys...)
		r.Rows = append(r.Rows, box("zzzz", 2*time.Hour))
		m.Update(newRound(r, nil))
		assert.Equal(t, tc.want, m.cursor.ID, name)
	}
}
