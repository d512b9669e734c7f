package monotask

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// List reads the list, which has one page. An answer that is no array is an error.
func (c *Client) List(ctx context.Context, _ providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		read := func(string) (rows []wireSandbox, next string, err error) {
			rows, err = c.readList(ctx, "list")
			return rows, "", err
		}
		take := func(w wireSandbox) bool { return yield(c.sandbox(w), nil) }
		if err := wirekit.EachRow(c.Profile, "list", read, wireSandbox.id, take); err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func (w wireSandbox) id() string { return w.ID }

func (c *Client) readList(ctx context.Context, op string) ([]wireSandbox, error) {
	var list httpx.List[wireSandbox]
	if _, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: "/api/sandbox/list"}, &list); err != nil {
		return nil, c.ListFault(err, op, "is the url right? the worker has no list there")
	}
	rows, err := list.Named(wireSandbox.id)
	return rows, fault.Placed(err, c.Profile, op)
}

// Get reads one.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	r, err := c.sandboxRequest("get", id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	var w wireSandbox
	if _, err := c.API.JSON(ctx, r, &w); err != nil {
		return sandbox.Sandbox{}, err
	}
	// The worker makes an empty object for an unknown name, which is neither a sandbox nor a
	// proof that there is none.
	if err := providers.CheckAnswerID(c.Profile, r.Op, id, w.ID); err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(w), nil
}

func (c *Client) sandbox(w wireSandbox) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.Profile, ProviderType: TypeName, ID: w.ID, State: stateOf(w.Status), RawState: w.Status,
		CreatedAt: providers.ValidTime(w.CreatedAt), AgentType: w.AgentType, TaskID: w.TaskID, Activity: sandbox.Unknown,
	}
	if s.CreatedAt.IsZero() && w.AgeMinutes != nil && *w.AgeMinutes >= 0 && *w.AgeMinutes <= maxAgeMinutes {
		s.CreatedAt = c.Now().Add(-time.Duration(*w.AgeMinutes * float64(time.Minute))).Truncate(time.Second)
	}
	s.Limits.Isolation = "worker isolate"
	return s
}

// maxAgeMinutes is ten years: a greater age is invalid.
const maxAgeMinutes = 10 * 365 * 24 * 60

func stateOf(status string) sandbox.State {
	if s, ok := sandbox.ParseState(status); ok {
		return s
	}
	return sandbox.StateUnknown
}
