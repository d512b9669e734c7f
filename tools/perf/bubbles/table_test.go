// Package bubbles measures the table of charm.land/bubbles beside the dashboard's own, which it is not made of: the
// columns, the size and the number of rows are those of the benchmarks of internal/tui.
package bubbles

import (
	"fmt"
	"testing"
	"time"

	"charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"
)

// records are what rows are made of, as a provider lists them.
func records() (born []time.Time) {
	for i := range 10_000 {
		born = append(born, time.Unix(1e9, 0).Add(-time.Duration(i)*time.Second))
	}
	return born
}

// rows are the cells of all records. This table keeps texts, so its caller has to format every row, not only those on the
// screen.
func rows(born []time.Time) (all []table.Row) {
	now := time.Unix(1e9, 0)
	for i, b := range born {
		age := now.Sub(b).String()
		all = append(all, table.Row{"worker", fmt.Sprintf("e2b/i%d", 1_000_000+i), "running", age, age, "98%", "50%", "12345678", "stuck: busy loop"})
	}
	return all
}

func newTable() table.Model {
	var columns []table.Column
	for i, title := range []string{"NAME", "REF", "STATE", "AGE", "IDLE", "CPU", "MEM", "SPARK", "WHY"} {
		columns = append(columns, table.Column{Title: title, Width: []int{34, 12, 12, 7, 7, 5, 5, 8, 32}[i]})
	}
	return table.New(table.WithColumns(columns), table.WithRows(rows(records())), table.WithFocused(true), table.WithWidth(140), table.WithHeight(37))
}

// BenchmarkRefresh is a round of which every row is new, with its frame.
func BenchmarkRefresh(b *testing.B) {
	m, born := newTable(), records()
	for b.Loop() {
		m.SetRows(rows(born))
		_ = m.View()
	}
}

// BenchmarkKey is a key with its frame.
func BenchmarkKey(b *testing.B) {
	m := newTable()
	for b.Loop() {
		m, _ = m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
		_ = m.View()
	}
}
