package vercel

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// List reads page by page, oldest name first, so that sandboxes that are created meanwhile
// come at the end. A 410 or 404 here means that team or project are gone, and never that
// there are no sandboxes.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		err := c.eachRow(ctx, "list", c.listQuery(q), func(w wireBox) bool { return yield(c.sandbox(view{box: &w}), nil) })
		if err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

// listQuery filters by what the API supports: one status, one tag.
func (c *Client) listQuery(q providers.Query) url.Values {
	query := c.teamQuery("project", c.project, "limit", "100", "sortBy", "createdAt", "sortOrder", "asc")
	if slices.Equal(q.States, []sandbox.State{sandbox.StateRunning}) {
		query.Set("status", "running")
	}
	wanted := toTags(q.Labels)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if !strings.Contains(key+wanted[key], ":") && wanted[key] != "" {
			query.Set("tags", key+":"+wanted[key])
			break
		}
	}
	return query
}

// eachRow gives each row of the list to take until take returns false, and records which
// session belongs to which name.
func (c *Client) eachRow(ctx context.Context, op string, query url.Values, take func(wireBox) bool) error {
	read := func(token string) (rows []wireBox, next string, err error) {
		if token != "" {
			query.Set("cursor", token)
		}
		var page wirePage
		if _, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: "/v2/sandboxes", Query: query}, &page); err != nil {
			return nil, "", c.ListFault(err, op, "is the team or project gone? `sbx doctor --provider "+c.Profile+"` says more")
		}
		if page.Pagination.Next != nil {
			next = *page.Pagination.Next
		}
		rows, err = page.Sandboxes.Named(wireBox.id)
		return rows, next, fault.Placed(err, c.Profile, op)
	}
	return wirekit.EachRow(c.Profile, op, read, wireBox.id, func(w wireBox) bool {
		c.names.record(w.CurrentSessionID, w.Name)
		return take(w)
	})
}

func (w wireBox) id() string { return cmp.Or(w.CurrentSessionID, w.Name) }

// sessionNames maps sessions to names of sandboxes. The record of a session may lack the name
// (the SDK's schema has no sourceSandboxName), and after a delete no other record has it.
type sessionNames struct {
	mu sync.Mutex
	of map[string]string
}

func (n *sessionNames) record(session, name string) {
	if session == "" || name == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]string{}
	}
	n.of[session] = name
}

func (n *sessionNames) nameOf(session string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[session]
}

// sandboxName finds the name of a session: in its own record, in what was read before, or in
// the row of the list whose current session it is; "" = not found.
func (c *Client) sandboxName(ctx context.Context, op string, w *wireSession) (string, error) {
	if name := cmp.Or(w.SourceSandboxName, c.names.nameOf(w.ID)); name != "" {
		return name, nil
	}
	err := c.eachRow(ctx, op, c.listQuery(providers.Query{}), func(row wireBox) bool { return row.CurrentSessionID != w.ID })
	return c.names.nameOf(w.ID), err
}
