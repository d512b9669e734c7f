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
	"sbx/internal/sandbox"
)

// pageSize is the most that a page may hold (E2B API, limit 1..100).
const pageSize = 100

// List reads page by page, oldest first where the API knows an order. States are
// always asked for: the API's default has changed before. A listing that loops,
// or that shows fewer running ones than the API says there are, ends in an error.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		l := &listing{c: c, query: c.filter(q), seen: map[string]bool{}}
		if err := l.read(ctx, yield); err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func (c *Client) filter(q providers.Query) url.Values {
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

// metadataFilter writes k=v&k=v. The server unescapes the parameter, then the
// string, then each key and value, so each is escaped twice here and the whole
// once more by url.Values.
func metadataFilter(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	twice := func(s string) string { return url.QueryEscape(url.QueryEscape(s)) }
	for k, v := range labels {
		pairs = append(pairs, twice(k)+"="+twice(v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// listing is one reading of the list.
type listing struct {
	c       *Client
	query   url.Values
	seen    map[string]bool
	pages   httpx.Pages
	paged   bool   // the newer list has answered
	bare    string // the state of a row that tells none
	running int    // rows in state running
	least   int    // what every page said there are of them; -1 = it does not say
}

// read yields rows until the last page; nil also when the consumer has stopped.
func (l *listing) read(ctx context.Context, yield func(sandbox.Sandbox, error) bool) error {
	l.least = -1
	for {
		var page httpx.List[wireSandbox]
		res, err := l.c.api.JSON(ctx, httpx.Request{Op: "list", Path: "/v2/sandboxes", Query: l.query}, &page)
		switch {
		case absent(err) && !l.paged:
			return l.old(ctx, yield)
		case err != nil:
			return listed(err)
		}
		l.paged = true
		l.total(res.Header)
		before := len(l.seen)
		if goes, err := l.give(page, yield); err != nil || !goes {
			return err
		}
		next := res.Header.Get("X-Next-Token")
		if next == "" {
			return l.complete()
		}
		if err := l.pages.Next(next, len(l.seen)-before); err != nil {
			return fault.Placed(err, l.c.name, "list")
		}
		l.query.Set("nextToken", next)
	}
}

// listed keeps a 404 or 410 of the list from reading as a missing sandbox.
func listed(err error) error {
	if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindGone {
		return fault.New(fault.KindUnavailable, "%w", err).WithHint("is the url right? the API has no list there")
	}
	return err
}

// give yields a page's rows; false when the consumer has stopped.
func (l *listing) give(page httpx.List[wireSandbox], yield func(sandbox.Sandbox, error) bool) (bool, error) {
	rows, err := page.Named(func(w wireSandbox) string { return w.SandboxID })
	if err != nil {
		return false, fault.Placed(err, l.c.name, "list")
	}
	for _, w := range rows {
		w.State = cmp.Or(w.State, l.bare)
		s := l.c.sandbox(w)
		if l.seen[s.ID] {
			continue
		}
		l.seen[s.ID] = true
		if s.State == sandbox.StateRunning {
			l.running++
		}
		if !yield(s, nil) {
			return false, nil
		}
	}
	return true, nil
}

// total keeps the least that any page said: sandboxes end while pages are read.
func (l *listing) total(h http.Header) {
	n, err := strconv.Atoi(h.Get("X-Total-Running"))
	if err != nil || n < 0 {
		return
	}
	if l.least < 0 || n < l.least {
		l.least = n
	}
}

// complete holds what was listed against what the API says there is.
func (l *listing) complete() error {
	if l.least > l.running {
		return fault.New(fault.KindUnavailable, "the listing shows %d of %d running sandboxes", l.running, l.least).At(l.c.name, "list").
			WithHint("list again; if it stays so, the provider's index is behind")
	}
	return nil
}

// old reads the first API's list, which has one page and running ones alone.
func (l *listing) old(ctx context.Context, yield func(sandbox.Sandbox, error) bool) error {
	var page httpx.List[wireSandbox]
	query := url.Values{}
	if m := l.query.Get("metadata"); m != "" {
		query.Set("metadata", m)
	}
	if _, err := l.c.api.JSON(ctx, httpx.Request{Op: "list", Path: "/sandboxes", Query: query}, &page); err != nil {
		return listed(err)
	}
	l.bare = "running"
	goes, err := l.give(page, yield)
	if err != nil || !goes || l.query.Get("state") == "running" {
		return err
	}
	return fault.New(fault.KindUnsupported, "this API lists running sandboxes alone; paused ones are not known").At(l.c.name, "list").
		WithHint("`--state running` asks for no more than it can tell")
}
