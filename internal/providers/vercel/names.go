package vercel

import (
	"cmp"
	"context"
	"net/url"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// sessionNames keeps which sandbox a session belongs to. A session may not tell it (the
// SDK's schema has no sourceSandboxName), and of one that was deleted nobody else can.
type sessionNames struct {
	mu sync.Mutex
	of map[string]string
}

func (n *sessionNames) note(session, name string) {
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

func (n *sessionNames) get(session string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[session]
}

// nameOf gives the sandbox of a session: by its own word, by what was read before, or by
// the row of the list whose current session it is. "" = none of them tells.
func (c *Client) nameOf(ctx context.Context, op string, w *wireSession) (string, error) {
	if name := cmp.Or(w.SourceSandboxName, c.names.get(w.ID)); name != "" {
		return name, nil
	}
	err := c.eachRow(ctx, op, c.filter(providers.Query{}), func(row wireBox) bool { return row.CurrentSessionID != w.ID })
	return c.names.get(w.ID), err
}

// eachRow reads the list page by page, notes whose session is whose, and gives each row to
// take until that returns false.
func (c *Client) eachRow(ctx context.Context, op string, query url.Values, take func(wireBox) bool) error {
	seen := map[string]bool{}
	var pages httpx.Pages
	for {
		page, err := c.page(ctx, op, query)
		if err != nil {
			return err
		}
		rows, err := page.Sandboxes.Named(func(w wireBox) string { return cmp.Or(w.CurrentSessionID, w.Name) })
		if err != nil {
			return fault.Placed(err, c.name, op)
		}
		before := len(seen)
		for _, w := range rows {
			id := cmp.Or(w.CurrentSessionID, w.Name)
			if seen[id] {
				continue
			}
			seen[id] = true
			c.names.note(w.CurrentSessionID, w.Name)
			if !take(w) {
				return nil
			}
		}
		next := page.Pagination.Next
		if next == nil || *next == "" {
			return nil
		}
		if err := pages.Next(*next, len(seen)-before); err != nil {
			return fault.Placed(err, c.name, op)
		}
		query.Set("cursor", *next)
	}
}
