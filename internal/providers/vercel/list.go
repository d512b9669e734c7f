package vercel

import (
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
		err := c.eachRow(ctx, "list", c.filter(q), func(w wireBox) bool { return yield(c.sandbox(view{box: &w}), nil) })
		if err != nil {
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

func (c *Client) page(ctx context.Context, op string, query url.Values) (page wirePage, err error) {
	_, err = c.http.JSON(ctx, httpx.Request{Op: op, Path: "/v2/sandboxes", Query: query}, &page)
	if missing(err) {
		return page, fault.New(fault.KindUnavailable, "%w", err).At(c.name, op).
			WithHint("is the team or project gone? `sbx doctor --provider %s` says more", c.name)
	}
	return page, err
}
