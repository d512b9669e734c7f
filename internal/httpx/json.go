package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/jsontext"
)

// maxQuoted is how many characters of an invalid answer are shown.
const maxQuoted = 60

// JSON is Do with the body decoded into out. A body that is no JSON, such as HTML, is
// fault.KindUnavailable and quoted.
func (c *Client) JSON(ctx context.Context, r Request, out any) (*Response, error) {
	res, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(res.Body, out); err != nil {
		return res, r.markScope(c.invalidBodyFault(r, res, err))
	}
	return res, nil
}

func (c *Client) invalidBodyFault(r Request, res *Response, err error) error {
	switch start := c.bodyStart(res.Body); {
	case isHTML(res.Header, res.Body):
		return fault.New(fault.KindUnavailable, "the answer is HTML instead of JSON: %q", start).At(c.o.Profile, r.Op).
			WithHint("check the url: requests go to %s", c.cleanText(c.hostOf(r)))
	case len(res.Body) == 0:
		return fault.New(fault.KindUnavailable, "the answer is empty").At(c.o.Profile, r.Op).
			WithHint("try later; if it happens again, check which server answers at %s", c.cleanText(c.hostOf(r)))
	default:
		return fault.New(fault.KindUnavailable, "the answer is invalid: %s: %q", c.cleanText(jsontext.Describe(err)), start).At(c.o.Profile, r.Op).
			WithHint("try later; if it happens again, the API has changed or the url is not that of %s", c.o.Profile)
	}
}

// bodyStart is the beginning of a body. Secrets are redacted before it is cut, so that no part
// of one is left.
func (c *Client) bodyStart(body []byte) string {
	const enough = 4 << 10 // bytes, also of a large body
	return flatten(c.hide(string(body[:min(len(body), enough)])), maxQuoted)
}

func isHTML(h http.Header, body []byte) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// List is a list in an answer. A value that is no list (`null`, an object, an error) and a
// missing key are never an empty list: decoding fails, or Rows does. The same holds for a row
// that is null.
type List[T any] struct {
	rows  []T
	there bool
}

// UnmarshalJSON decodes an array. It is called for null, too.
func (l *List[T]) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '[' {
		return errors.New("it must be a list")
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

// Rows are the rows; fault.KindUnavailable where the answer had no list.
func (l List[T]) Rows() ([]T, error) {
	if !l.there {
		return nil, fault.New(fault.KindUnavailable, "the answer has no list").WithHint("try later; if it happens again, the API has changed or the url is wrong")
	}
	return l.rows, nil
}

// Named is Rows of objects that must have an id each: a row without one is an object that cannot
// be identified.
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
