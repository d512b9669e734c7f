package monotask

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// List reads the one page that there is. Anything but an array is an error: an
// object or null is never "no sandboxes".
func (c *Client) List(ctx context.Context, _ providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		rows, err := c.rows(ctx, "list")
		if err != nil {
			yield(sandbox.Sandbox{}, err)
			return
		}
		seen := map[string]bool{}
		for _, w := range rows {
			if seen[w.ID] {
				continue
			}
			seen[w.ID] = true
			if !yield(c.sandbox(w), nil) {
				return
			}
		}
	}
}

func (c *Client) rows(ctx context.Context, op string) ([]wireSandbox, error) {
	var list httpx.List[wireSandbox]
	_, err := c.http.JSON(ctx, httpx.Request{Op: op, Path: "/api/sandbox/list"}, &list)
	if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindGone {
		return nil, fault.New(fault.KindUnavailable, "%w", err).WithHint("is the url right? the worker has no list there")
	}
	if err != nil {
		return nil, err
	}
	rows, err := list.Named(func(w wireSandbox) string { return w.ID })
	return rows, fault.Placed(err, c.name, op)
}

// Get reads one.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	r, err := c.below("get", id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	var w wireSandbox
	if _, err := c.http.JSON(ctx, r, &w); err != nil {
		return sandbox.Sandbox{}, err
	}
	// An unknown name makes an empty object there, which must not pass for a sandbox,
	// nor for the proof that there is none.
	if err := providers.About(c.name, r.Op, id, w.ID); err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(w), nil
}

func (c *Client) sandbox(w wireSandbox) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.name, ProviderType: TypeName, ID: w.ID, State: stateOf(w.Status), RawState: w.Status,
		CreatedAt: providers.Moment(w.CreatedAt), AgentType: w.AgentType, TaskID: w.TaskID, Activity: sandbox.Unknown,
	}
	if s.CreatedAt.IsZero() && w.AgeMinutes != nil && *w.AgeMinutes >= 0 && *w.AgeMinutes <= mostMinutes {
		s.CreatedAt = c.now().Add(-time.Duration(*w.AgeMinutes * float64(time.Minute))).Truncate(time.Second)
	}
	s.Limits.Isolation = "worker isolate"
	return s
}

// mostMinutes is an age of ten years: what is older is no age.
const mostMinutes = 10 * 365 * 24 * 60

func stateOf(status string) sandbox.State {
	if s, ok := sandbox.ParseState(status); ok {
		return s
	}
	return sandbox.StateUnknown
}
