package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	stream "github.com/go-json-experiment/json/jsontext"

	"sbx/internal/fault"
	"sbx/internal/jsontext"
)

// maxQuoted is how many characters of an invalid answer are shown.
const maxQuoted = 60

// JSON is Do with the body decoded into out. A body that is no JSON, such as HTML, is
// fault.KindUnavailable and quoted. A field that does not fit is decoded as null, see Decode.
func (c *Client) JSON(ctx context.Context, r Request, out any) (*Response, error) {
	res, err := c.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	odd, err := Decode(res.Body, out)
	if err != nil {
		return res, r.markScope(c.invalidBodyFault(r, res, err))
	}
	c.traceOdd(r, append(odd, oddIn(out)...))
	return res, nil
}

// maxOddTraced is how many odd fields of one answer are named.
const maxOddTraced = 5

// traceOdd names the fields of an answer that were ignored, each once.
func (c *Client) traceOdd(r Request, odd []string) {
	odd = slices.DeleteFunc(odd, func(text string) bool {
		_, told := c.told.LoadOrStore(text, true)
		return told
	})
	for _, text := range odd[:min(len(odd), maxOddTraced)] {
		c.traceLine("! %s: ignored, as if not reported: %s", r.Op, text)
	}
	if more := len(odd) - maxOddTraced; more > 0 {
		c.traceLine("! %s: %d more fields ignored", r.Op, more)
	}
}

func (c *Client) invalidBodyFault(r Request, res *Response, err error) error {
	switch start := c.bodyStart(res.Body); {
	case isHTML(res.Header, res.Body):
		return fault.New(fault.KindUnavailable, "the answer is HTML instead of JSON: %q", start).At(c.o.Profile, r.Op).
			WithHint("check the url: requests go to %s", c.Clean(c.hostOf(r)))
	case len(res.Body) == 0:
		return fault.New(fault.KindUnavailable, "the answer is empty").At(c.o.Profile, r.Op).
			WithHint("try later; if it happens again, check which server answers at %s", c.Clean(c.hostOf(r)))
	default:
		return fault.New(fault.KindUnavailable, "the answer is invalid: %s: %q", c.Clean(jsontext.Describe(err)), start).At(c.o.Profile, r.Op).
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

// usualRows is how many rows a page of most APIs has.
const usualRows = 100

var (
	errNoList  = errors.New("it must be a list")
	errNullRow = errors.New("a row is null")
)

// List is a list in an answer. A value that is no list (`null`, an object, an error) and a
// missing key are never an empty list: decoding fails, or Rows does. A row that is null or that
// cannot be decoded is refused, and the others stay.
type List[T any] struct {
	rows  []T
	place []int // of each row in the list, where some are refused
	there bool
	why   []string // one text for each refused row
	odd   []string
}

// UnmarshalJSONFrom decodes an array whose rows are all in order. After an error Decode reads the answer
// again, row by row.
func (l *List[T]) UnmarshalJSONFrom(dec *stream.Decoder) error {
	if dec.PeekKind() != stream.KindBeginArray {
		return errNoList
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*l = List[T]{there: true, rows: make([]T, 0, usualRows)}
	for dec.PeekKind() != stream.KindEndArray {
		if dec.PeekKind() == stream.KindNull {
			return errNullRow
		}
		l.rows = append(l.rows, *new(T))
		if err := jsonv2.UnmarshalDecode(dec, &l.rows[len(l.rows)-1]); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// UnmarshalJSON decodes an array row by row. It is called for null, too.
func (l *List[T]) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) == 0 || text[0] != '[' {
		return errNoList
	}
	*l = List[T]{there: true}
	var rows []json.RawMessage
	if err := json.Unmarshal(text, &rows); err != nil {
		return err
	}
	for i, row := range rows {
		l.addRow(i, row)
	}
	return nil
}

func (l *List[T]) addRow(i int, text json.RawMessage) {
	if string(text) == "null" {
		l.why = append(l.why, fmt.Sprintf("row %d of the list is null", i+1))
		return
	}
	var row T
	odd, err := Decode(text, &row)
	if err != nil {
		l.why = append(l.why, fmt.Sprintf("row %d of the list is invalid: %s", i+1, jsontext.Describe(err)))
		return
	}
	for _, what := range odd {
		l.odd = append(l.odd, fmt.Sprintf("row %d: %s", i+1, what))
	}
	l.rows, l.place = append(l.rows, row), append(l.place, i)
}

func (l *List[T]) oddFields() []string { return slices.Concat(l.why, l.odd) }

// Len is the number of rows, refused ones included.
func (l *List[T]) Len() int { return len(l.rows) + len(l.why) }

// Rows are the rows; fault.KindUnavailable where the answer had no list. Where rows are refused it returns
// the others with an error for which OnlyRefused is true.
func (l List[T]) Rows() ([]T, error) { return l.Named(func(T) string { return "unnamed" }) }

// Named is Rows of objects that must have an id each: a row without one is an object that cannot
// be identified, and is refused.
func (l List[T]) Named(id func(T) string) ([]T, error) {
	if !l.there {
		return nil, fault.New(fault.KindUnavailable, "the answer has no list").WithHint("try later; if it happens again, the API has changed or the url is wrong")
	}
	if len(l.why) == 0 && !slices.ContainsFunc(l.rows, func(row T) bool { return id(row) == "" }) {
		return l.rows, nil
	}
	refused := RefusedRowsError{why: slices.Clone(l.why), total: l.Len()}
	rows := make([]T, 0, len(l.rows))
	for i, row := range l.rows {
		if id(row) != "" {
			rows = append(rows, row)
			continue
		}
		if l.place != nil {
			i = l.place[i]
		}
		refused.why = append(refused.why, fmt.Sprintf("row %d of the list has no id", i+1))
	}
	return rows, fault.New(fault.KindUnavailable, "%w", &refused).WithHint("`-v` shows what is odd; the sandbox of such a row can only be found at its provider")
}
