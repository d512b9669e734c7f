package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"sbx/internal/fault"
)

// List is a list in an answer. Whatever is no list, `null`, an object, an error, or a
// key that is not there, is never "nothing there": decoding it fails, or Rows does.
// So does a row that is null.
type List[T any] struct {
	rows  []T
	there bool
}

// UnmarshalJSON reads an array. It is called for null, too.
func (l *List[T]) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '[' {
		return errors.New("a list is due")
	}
	var rows []*T
	if err := json.Unmarshal(text, &rows); err != nil {
		return err
	}
	l.rows, l.there = make([]T, 0, len(rows)), true
	for i, row := range rows {
		if row == nil {
			return fmt.Errorf("row %d of the list is null", i+1)
		}
		l.rows = append(l.rows, *row)
	}
	return nil
}

// Rows gives the rows; fault.KindUnavailable where there was no list in the answer.
func (l List[T]) Rows() ([]T, error) {
	if !l.there {
		return nil, fault.New(fault.KindUnavailable, "the answer has no list").WithHint("try later; if it stays so, the API has changed or the url is not its own")
	}
	return l.rows, nil
}

// Named is Rows of objects that must have an id each: a row without one stands for
// an object that is there and cannot be told.
func (l List[T]) Named(id func(T) string) ([]T, error) {
	rows, err := l.Rows()
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if id(row) == "" {
			return nil, fault.New(fault.KindUnavailable, "row %d of the list has no id", i+1)
		}
	}
	return rows, nil
}

const (
	// mostPages bounds a listing: at 100 rows a page it is a million of them.
	mostPages = 10_000
	// mostStale is how many pages in a row may bring nothing new.
	mostStale = 20
)

// Pages guards the reading of a list of several pages: a token that comes again, and
// pages without end, are fault.KindUnavailable, so that the listing is incomplete and
// says so.
type Pages struct {
	tokens map[string]bool
	stale  int
}

// Next notes a page and the token of the one behind it: fresh is how many rows it
// has that no page before had.
func (p *Pages) Next(token string, fresh int) error {
	if p.tokens == nil {
		p.tokens = map[string]bool{}
	}
	p.stale++
	if fresh > 0 {
		p.stale = 0
	}
	switch {
	case p.tokens[token]:
		return fault.New(fault.KindUnavailable, "the listing loops: a page token came twice")
	case p.stale >= mostStale:
		return fault.New(fault.KindUnavailable, "the listing has no end: %d pages brought nothing new", p.stale)
	case len(p.tokens)+1 >= mostPages:
		return fault.New(fault.KindUnavailable, "the listing has no end: %d pages were read", mostPages).WithHint("ask for less: narrow it by state or label")
	}
	p.tokens[token] = true
	return nil
}
