package vercel

import (
	"context"
	"iter"
	"net/url"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// List reads page by page, oldest name first. A 410 or 404 here means that team
// or project is gone, never that there are no sandboxes.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		if err := c.list(ctx, c.filter(q), yield); err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func (c *Client) filter(q providers.Query) url.Values {
	query := c.scoped("project", c.project, "limit", "100", "sortBy", "createdAt", "sortOrder", "asc")
	if slices.Equal(q.States, []sandbox.State{sandbox.StateRunning}) {
		query.Set("status", "running")
	}
	return query
}

// list yields rows until the last page; nil also when the consumer has stopped.
func (c *Client) list(ctx context.Context, query url.Values, yield func(sandbox.Sandbox, error) bool) error {
	seen, cursors := map[string]bool{}, map[string]bool{}
	for {
		var page wirePage
		_, err := c.http.JSON(ctx, httpx.Request{Op: "list", Path: "/v2/sandboxes", Query: query}, &page)
		if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindGone {
			return fault.New(fault.KindUnavailable, "%w", err).WithHint("is the team or project gone? `sbx doctor --provider %s` says more", c.name)
		}
		if err != nil {
			return err
		}
		for _, w := range page.Sandboxes {
			if w.CurrentSessionID == "" || seen[w.CurrentSessionID] {
				continue
			}
			seen[w.CurrentSessionID] = true
			if !yield(c.sandbox(view{box: &w}), nil) {
				return nil
			}
		}
		next := page.Pagination.Next
		switch {
		case next == nil || *next == "":
			return nil
		case cursors[*next]:
			return fault.New(fault.KindUnavailable, "the listing loops: a cursor came twice").At(c.name, "list")
		}
		cursors[*next] = true
		query.Set("cursor", *next)
	}
}
