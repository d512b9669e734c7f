package tui

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// BenchmarkChangingRefresh plays 1,000 rounds of some 9,000 of 10,000 rows, each with its frame: a tenth of the rows come
// and go, and a tenth change their age and verdict. p99-ms is what 99 of 100 of them take at most.
func BenchmarkChangingRefresh(b *testing.B) {
	m, r := large(b)
	rng := rand.New(rand.NewPCG(1, 1))
	variants := make([]look.LiveRound, 8)
	for i := range variants {
		variants[i] = r
		variants[i].Rows = nil
		for _, j := range r.Rows {
			switch rng.IntN(10) {
			case 0:
				continue
			case 1:
				j.Sandbox = new(*j.Sandbox)
				j.Sandbox.CreatedAt = j.Sandbox.CreatedAt.Add(-time.Duration(rng.IntN(1000)) * time.Second)
				j.Verdict.Stuck = sandbox.False
			}
			variants[i].Rows = append(variants[i].Rows, j)
		}
	}
	for b.Loop() {
		took := make([]time.Duration, 1000)
		for i := range took {
			r := newRound(variants[i%len(variants)], m.feeds[0].room) // as the command does that reads it
			began := time.Now()
			m.Update(r)
			_ = m.View()
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
}

// BenchmarkBeat is a second in which only ages change, with its frame.
func BenchmarkBeat(b *testing.B) {
	m, _ := large(b)
	for b.Loop() {
		m.Update(beatMsg{})
		_ = m.View()
	}
}

// BenchmarkRefresh is a round of 10,000 rows with its frame, and BenchmarkKey a key with its frame.
func BenchmarkRefresh(b *testing.B) {
	m, r := large(b)
	for b.Loop() {
		m.Update(newRound(r, m.feeds[0].room))
		_ = m.View()
	}
}

func BenchmarkKey(b *testing.B) {
	m, _ := large(b)
	for b.Loop() {
		press(m, "down")
		_ = m.View()
	}
}

// BenchmarkStep is a second in which the page of a step is open that has 10,000 suspects, with its frame.
func BenchmarkStep(b *testing.B) {
	for _, key := range []string{"2", "6"} {
		b.Run(key, func(b *testing.B) {
			m, _ := large(b)
			press(m, key)
			for b.Loop() {
				m.Update(beatMsg{})
				_ = m.View()
			}
		})
	}
}

func large(b *testing.B) (*Model, look.LiveRound) {
	b.Helper()
	m := NewModel(b.Context(), newScene(), noon, "sbx", output.Cells{})
	m.Update(tea.WindowSizeMsg{Width: 140, Height: 45})
	r := newScene().rounds["e2b"]
	r.Profile, r.Rows = "e2b", nil
	for i := range 10_000 {
		r.Rows = append(r.Rows, boxOf("e2b", "i"+strconv.Itoa(1_000_000+i), "worker", time.Duration(i)*time.Second, stuckVerdict()))
	}
	m.Update(newRound(r, nil))
	return m, r
}
