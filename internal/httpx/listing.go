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
