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
		read := func(string) (wirekit.Page[wireSandbox], error) { // the only page
			rows, err := c.readList(ctx, "list")
			return wirekit.Page[wireSandbox]{Rows: rows}, err
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
		return nil, c.ListFault(err, op, "check the url: the worker has no list there")
	}
	rows, err := list.Named(wireSandbox.id)
	return rows, fault.Placed(err, c.Profile, op)
}

// Get reads the record of one sandbox.
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
	state, _ := sandbox.ParseState(w.Status) // a word that is not known is StateUnknown
	s := sandbox.Sandbox{
		Provider: c.Profile, ProviderType: TypeName, ID: w.ID, State: state, RawState: w.Status,
		CreatedAt: providers.ValidTime(w.CreatedAt), AgentType: w.AgentType, TaskID: w.TaskID, Activity: sandbox.Unknown,
	}
	if w.AgeMinutes != nil && *w.AgeMinutes >= 0 && *w.AgeMinutes <= maxAgeMinutes {
		byAge := c.Now().Add(-time.Duration(*w.AgeMinutes * float64(time.Minute)))
		if s.CreatedAt.IsZero() {
			s.CreatedAt = byAge.Truncate(time.Second)
		} else if skew := s.CreatedAt.Sub(byAge); skew.Abs() >= time.Minute { // the age is in whole minutes
			s.ClockSkew = skew
		}
	}
	s.Limits.Isolation = "worker isolate"
	return s
}

// maxAgeMinutes is ten years: a greater age is invalid.
const maxAgeMinutes = 10 * 365 * 24 * 60

// Records is the worker's own list as records of a control plane: Cloudflare has no other list
// of its sandboxes.
func (c *Client) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		for s, err := range c.List(ctx, providers.Query{All: true}) {
			r := providers.Record{
				SandboxID: s.ID, TaskID: s.TaskID, AgentType: s.AgentType, RawState: s.RawState, CreatedAt: s.CreatedAt,
				Live: claimsLive(s.State),
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// claimsLive is whether a record of this state says that its sandbox exists.
func claimsLive(s sandbox.State) sandbox.Verdict {
	if s == sandbox.StateUnknown {
		return sandbox.Unknown
	}
	return sandbox.VerdictOf(!s.Ended())
}
