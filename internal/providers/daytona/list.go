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
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// pageSize is the longest page (Daytona API, limit 1..200).
const pageSize = 200

// List reads page by page in the order of creation: the API's default order, by last
// activity, changes while it is read, so that rows are skipped and repeated.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		err := c.eachRow(ctx, listQuery(q), func(w wireSandbox) bool { return yield(c.sandbox(w), nil) })
		if err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func listQuery(q providers.Query) url.Values {
	v := url.Values{"limit": {strconv.Itoa(pageSize)}, "sort": {"createdAt"}, "order": {"asc"}}
	if len(q.Labels) > 0 {
		text, err := json.Marshal(q.Labels)
		if err == nil {
			v.Set("labels", string(text))
		}
	}
	return v
}

// eachRow gives the rows of a query to take, each once, until take returns false.
func (c *Client) eachRow(ctx context.Context, query url.Values, take func(wireSandbox) bool) error {
	read := func(token string) (rows []wireSandbox, next string, err error) {
		if token != "" {
			query.Set("cursor", token)
		}
		var page wirePage
		if _, err := c.API.JSON(ctx, httpx.Request{Op: "list", Path: "/sandbox", Query: query}, &page); err != nil {
			return nil, "", c.listFault(err)
		}
		if page.NextCursor != nil {
			next = *page.NextCursor
		}
		rows, err = page.Items.Named(wireSandbox.id)
		return rows, next, fault.Placed(err, c.Profile, "list")
	}
	return wirekit.EachRow(c.Profile, "list", read, wireSandbox.id, func(w wireSandbox) bool {
		c.recordRow(w)
		return take(w)
	})
}

func (w wireSandbox) id() string { return w.ID }

// listFault is the error of a listing. Without /api the address is that of the dashboard,
// which answers with a web page.
func (c *Client) listFault(err error) error {
	hint := fault.HintOf(err)
	if !strings.HasSuffix(c.API.Base(), "/api") {
		hint = "the url must end in /api"
	}
	err = c.ListFault(err, "list", hint)
	if f, ok := err.(*fault.Error); ok && f.Kind == fault.KindUnavailable && hint != "" { //nolint:errorlint // the outermost one is shown
		f.Hint = hint
	}
	return err
}
