package monotask

import (
	"context"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

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
	listed, notDestroyed := *w.Active+*w.Provisioning+*w.Terminating, *w.TotalCreated-*w.TotalDestroyed
	if listed == notDestroyed {
		return providers.Check{Check: "counters", Verdict: sandbox.True, Message: "created minus destroyed equals the listed number"}
	}
	return providers.Check{
		Check: "counters", Verdict: sandbox.False,
		Message: "the worker counts " + formatCount(&listed) + " sandboxes, but created minus destroyed is " + formatCount(&notDestroyed),
		Hint:    "its state may be corrupt (the runbook's cause 4): compare `sbx ls` with the task queue",
	}
}

func formatCount(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}
