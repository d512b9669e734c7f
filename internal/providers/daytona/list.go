package daytona

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// pageSize is the most that a page may hold (Daytona API, limit 1..200).
const pageSize = 200

// List reads page by page in the order of creation: the API's own order, by last
// activity, moves while it is read, so that rows are skipped and repeated.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		err := c.rows(ctx, filter(q), func(w wireSandbox) bool { return yield(c.sandbox(w), nil) })
		if err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func filter(q providers.Query) url.Values {
	v := url.Values{"limit": {strconv.Itoa(pageSize)}, "sort": {"createdAt"}, "order": {"asc"}}
	if len(q.Labels) > 0 {
		text, err := json.Marshal(q.Labels)
		if err == nil {
			v.Set("labels", string(text))
		}
	}
	return v
}

// rows yields the rows of a query, each once; nil also when take has had enough.
func (c *Client) rows(ctx context.Context, query url.Values, take func(wireSandbox) bool) error {
	seen := map[string]bool{}
	var pages httpx.Pages
	for {
		var page wirePage
		if _, err := c.http.JSON(ctx, httpx.Request{Op: "list", Path: "/sandbox", Query: query}, &page); err != nil {
			return c.listed(err)
		}
		rows, err := page.Items.Named(func(w wireSandbox) string { return w.ID })
		if err != nil {
			return fault.Placed(err, c.name, "list")
		}
		before := len(seen)
		for _, w := range rows {
			if seen[w.ID] {
				continue
			}
			seen[w.ID] = true
			c.learn(w)
			if !take(w) {
				return nil
			}
		}
		if page.NextCursor == nil || *page.NextCursor == "" {
			return nil
		}
		if err := pages.Next(*page.NextCursor, len(seen)-before); err != nil {
			return fault.Placed(err, c.name, "list")
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// listed keeps a 404 or 410 of the list from reading as a missing sandbox. An
// address without /api leads to the dashboard, a web page.
func (c *Client) listed(err error) error {
	hint := fault.HintOf(err)
	if !strings.HasSuffix(c.http.Base(), "/api") {
		hint = "the url must end in /api"
	}
	switch kind := fault.KindOf(err); kind {
	case fault.KindNotFound, fault.KindGone:
		return fault.New(fault.KindUnavailable, "%w", err).WithHint("%s", hint)
	case fault.KindUnavailable:
		if f, ok := err.(*fault.Error); ok && hint != "" { //nolint:errorlint // the outermost one is shown
			f.Hint = hint
		}
	default:
	}
	return err
}
