package e2b

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// pageSize is the longest page (E2B API, limit 1..100).
const pageSize = 100

// List reads page by page, oldest first where the API has an order. The query always has
// states, since the API's default has changed before. A listing with fewer running sandboxes
// than the API reports ends in an error.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		l := &listing{c: c, query: c.listQuery(q), least: -1}
		if err := l.readAll(ctx, yield); err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func (c *Client) listQuery(q providers.Query) url.Values {
	states := []string{"running", "paused"}
	if only := slices.DeleteFunc(slices.Clone(states), func(s string) bool { return !slices.Contains(q.States, sandbox.State(s)) }); len(only) > 0 {
		states = only
	}
	v := url.Values{"state": {strings.Join(states, ",")}, "limit": {strconv.Itoa(pageSize)}}
	if !c.dialect.old {
		v.Set("order", "asc")
	}
	if len(q.Labels) > 0 {
		v.Set("metadata", metadataFilter(q.Labels))
	}
	return v
}

// metadataFilter is k=v&k=v. The server unescapes the parameter, then the string, then each
// key and value, so each is escaped twice here and the whole once more by url.Values.
func metadataFilter(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	twice := func(s string) string { return url.QueryEscape(url.QueryEscape(s)) }
	for k, v := range labels {
		pairs = append(pairs, twice(k)+"="+twice(v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

type listing struct {
	c       *Client
	query   url.Values
	old     bool // the newer list is missing
	running int  // rows in state running
	least   int  // the least number of running sandboxes that any page reported; -1 = none did
}

// readAll yields all rows; nil also when the consumer has stopped.
func (l *listing) readAll(ctx context.Context, yield func(sandbox.Sandbox, error) bool) error {
	stopped := false
	err := wirekit.EachRow(l.c.Profile, "list", func(token string) ([]wireSandbox, string, error) { return l.readPage(ctx, token) }, l.c.idOf, func(w wireSandbox) bool {
		s := l.c.sandbox(w)
		if s.State == sandbox.StateRunning {
			l.running++
		}
		stopped = !yield(s, nil)
		return !stopped
	})
	switch {
	case err != nil || stopped:
		return err
	case l.old && l.query.Get("state") != "running":
		return l.c.Fault(fault.KindUnsupported, "list", "this API lists running sandboxes alone; paused ones are not known").
			WithHint("`--state running` asks for no more than it can tell")
	case l.least > l.running:
		return l.c.Fault(fault.KindUnavailable, "list", "the listing shows %d of %d running sandboxes", l.running, l.least).
			WithHint("list again; if it stays so, the provider's index is behind")
	}
	return nil
}

// readPage reads a page of the list. Where that is missing it reads the list of the first
// API, which has one page with running sandboxes only.
func (l *listing) readPage(ctx context.Context, token string) (rows []wireSandbox, next string, err error) {
	if token != "" {
		l.query.Set("nextToken", token)
	}
	var page httpx.List[wireSandbox]
	res, err := l.c.API.JSON(ctx, httpx.Request{Op: "list", Path: "/v2/sandboxes", Query: l.query}, &page)
	if l.old = routeMissing(err) && token == ""; l.old {
		query := url.Values{}
		if m := l.query.Get("metadata"); m != "" {
			query.Set("metadata", m)
		}
		res, err = l.c.API.JSON(ctx, httpx.Request{Op: "list", Path: "/sandboxes", Query: query}, &page)
	}
	if err != nil {
		return nil, "", l.c.ListFault(err, "list", "is the url right? the API has no list there")
	}
	rows, err = page.Named(func(w wireSandbox) string { return w.SandboxID })
	if l.old {
		for i := range rows {
			rows[i].State = cmp.Or(rows[i].State, "running")
		}
		return rows, "", fault.Placed(err, l.c.Profile, "list")
	}
	l.countReported(res.Header)
	return rows, res.Header.Get("X-Next-Token"), fault.Placed(err, l.c.Profile, "list")
}

// countReported records the number of running sandboxes that a page reports. The least one
// counts, since sandboxes end while pages are read.
func (l *listing) countReported(h http.Header) {
	n, err := strconv.Atoi(h.Get("X-Total-Running"))
	if err != nil || n < 0 {
		return
	}
	if l.least < 0 || n < l.least {
		l.least = n
	}
}
