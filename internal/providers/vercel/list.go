package vercel

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// List reads page by page, oldest name first, so that what is made meanwhile comes
// at the end. A 410 or 404 here means that team or project is gone, never that
// there are no sandboxes.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		if err := c.list(ctx, c.filter(q), yield); err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

// filter narrows by what the API can: one status, one tag.
func (c *Client) filter(q providers.Query) url.Values {
	query := c.scoped("project", c.project, "limit", "100", "sortBy", "createdAt", "sortOrder", "asc")
	if slices.Equal(q.States, []sandbox.State{sandbox.StateRunning}) {
		query.Set("status", "running")
	}
	wanted := tags(q.Labels)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if !strings.Contains(key+wanted[key], ":") && wanted[key] != "" {
			query.Set("tags", key+":"+wanted[key])
			break
		}
	}
	return query
}

// list yields rows until the last page; nil also when the consumer has stopped.
func (c *Client) list(ctx context.Context, query url.Values, yield func(sandbox.Sandbox, error) bool) error {
	seen := map[string]bool{}
	var pages httpx.Pages
	for {
		page, err := c.page(ctx, query)
		if err != nil {
			return err
		}
		rows, err := page.Sandboxes.Named(func(w wireBox) string { return cmp.Or(w.CurrentSessionID, w.Name) })
		if err != nil {
			return fault.Placed(err, c.name, "list")
		}
		before := len(seen)
		for _, w := range rows {
			s := c.sandbox(view{box: &w})
			if seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			if !yield(s, nil) {
				return nil
			}
		}
		next := page.Pagination.Next
		if next == nil || *next == "" {
			return nil
		}
		if err := pages.Next(*next, len(seen)-before); err != nil {
			return fault.Placed(err, c.name, "list")
		}
		query.Set("cursor", *next)
	}
}

func (c *Client) page(ctx context.Context, query url.Values) (page wirePage, err error) {
	_, err = c.http.JSON(ctx, httpx.Request{Op: "list", Path: "/v2/sandboxes", Query: query}, &page)
	if missing(err) {
		return page, fault.New(fault.KindUnavailable, "%w", err).At(c.name, "list").
			WithHint("is the team or project gone? `sbx doctor --provider %s` says more", c.name)
	}
	return page, err
}
