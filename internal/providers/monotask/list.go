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
		read := func(string) (wirekit.Page[wireSandbox], error) { // all of it
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
	if w.AgeMinutes != nil && *w.AgeMinutes >= 0 && *w.AgeMinutes <= maxAgeMinutes {
		born := c.Now().Add(-time.Duration(*w.AgeMinutes * float64(time.Minute)))
		if s.CreatedAt.IsZero() {
			s.CreatedAt = born.Truncate(time.Second)
		} else if skew := s.CreatedAt.Sub(born); skew.Abs() >= time.Minute { // the age is in whole minutes
			s.ClockSkew = skew
		}
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

// Usage is what the agent reports about itself.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	r, err := c.sandboxRequest("usage", id, "resources")
	if err != nil {
		return sandbox.Usage{}, err
	}
	var w wireResources
	if _, err := c.API.JSON(ctx, r, &w); err != nil {
		return sandbox.Usage{}, err
	}
	switch {
	case w.ID != "" && w.ID != id:
		return sandbox.Usage{}, providers.CheckAnswerID(c.Profile, r.Op, id, w.ID)
	case w.CPUPercent == nil, w.Operations == nil: // the two signs of work: unread they would be taken for rest
		return sandbox.Usage{}, c.Fault(fault.KindUnavailable, r.Op, "the agent reports no processor time or no operations")
	}
	u := sandbox.Usage{At: c.Now(), Source: "self-reported by the agent", CPUPercent: providers.ValidPercent(w.CPUPercent), Operations: w.Operations}
	if w.MemoryMB != nil && *w.MemoryMB >= 0 && *w.MemoryMB < 1<<30 {
		u.MemoryBytes = new(int64(*w.MemoryMB * sandbox.MiB))
	}
	if w.DurationMS != nil && *w.DurationMS >= 0 && *w.DurationMS <= maxAgeMinutes*60*1000 {
		u.Duration = new(time.Duration(*w.DurationMS * float64(time.Millisecond)))
	}
	return u, nil
}

// Stats are the worker's own counters.
func (c *Client) Stats(ctx context.Context) (providers.Stats, error) {
	w, err := c.readStats(ctx)
	return providers.Stats{
		Active: w.Active, Provisioning: w.Provisioning, Terminating: w.Terminating,
		TotalCreated: w.TotalCreated, TotalDestroyed: w.TotalDestroyed,
	}, err
}

func (c *Client) readStats(ctx context.Context) (wireStats, error) {
	var w wireStats
	_, err := c.API.JSON(ctx, httpx.Request{Op: "stats", Path: "/api/sandbox/stats"}, &w)
	return w, err
}

// Records is the worker's own list as records of a control plane: Cloudflare has no other list
// of its sandboxes.
func (c *Client) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		for s, err := range c.List(ctx, providers.Query{All: true}) {
			r := providers.Record{
				SandboxID: s.ID, TaskID: s.TaskID, AgentType: s.AgentType, RawState: s.RawState, CreatedAt: s.CreatedAt,
				Live: shouldLive(s.State),
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func shouldLive(s sandbox.State) sandbox.Verdict {
	if s == sandbox.StateUnknown {
		return sandbox.Unknown
	}
	return sandbox.VerdictOf(!s.Ended())
}

// Probe reads the record; nothing inside can be asked.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	s, err := c.Get(ctx, id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{
		Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: []sandbox.Evidence{c.Evidence("status", s.RawState, c.Profile)},
	}
	switch {
	case s.State.Ended():
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
	case s.State == sandbox.StateProvisioning, s.State == sandbox.StateTerminating:
		h.Condition = providers.ConditionWait
	}
	return h, nil
}

// Check compares the counters: created less destroyed must be the number of sandboxes
// (R18).
func (c *Client) Check(ctx context.Context) []providers.Check {
	w, err := c.readStats(ctx)
	if err != nil {
		return []providers.Check{wirekit.FailedCheck("api", err)}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: "answers; " + formatCount(w.Active) + " active"}, w.checkCounters()}
	return append(found, providers.CheckClock(c.API))
}

func (w wireStats) checkCounters() providers.Check {
	check := providers.Check{Check: "counters", Verdict: sandbox.Unknown, Message: "the worker does not report all of them"}
	if w.Active == nil || w.Provisioning == nil || w.Terminating == nil || w.TotalCreated == nil || w.TotalDestroyed == nil {
		return check
	}
	here, ever := *w.Active+*w.Provisioning+*w.Terminating, *w.TotalCreated-*w.TotalDestroyed
	if here == ever {
		return providers.Check{Check: "counters", Verdict: sandbox.True, Message: "created minus destroyed equals the listed number"}
	}
	return providers.Check{
		Check: "counters", Verdict: sandbox.False,
		Message: "the worker counts " + formatCount(&here) + " sandboxes, but created minus destroyed is " + formatCount(&ever),
		Hint:    "its state may be corrupt (the runbook's cause 4): compare `sbx ls` with the task queue",
	}
}
