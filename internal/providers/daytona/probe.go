package daytona

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// again is how far two looks at a silent toolbox are apart: a daemon that is
// being restarted answers the second.
const again = 2 * time.Second

// Probe asks the API, then, where it says `started`, the toolbox, twice if need
// be: after memory ran out inside, a sandbox stays `started` for minutes.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	w, err := c.detail(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: []sandbox.Evidence{c.fact("state", w.State)}}
	switch s := stateOf(w); {
	case transitional(s):
		h.Condition = providers.ConditionWait
		return h, nil
	case s == sandbox.StateStopped, s == sandbox.StatePaused, s == sandbox.StateFailed && w.Recoverable:
		h.Verdict, h.Condition = sandbox.False, providers.ConditionResumable
		return h, nil
	case s.Ended():
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
		return h, nil
	case s != sandbox.StateRunning:
		return h, nil
	}
	for look := 0; ; look++ {
		_, err = c.http.Do(ctx, c.toolbox(httpx.Request{Op: "probe " + id, Path: "/version", Once: true}, w.ID, true))
		if err == nil || look == 1 || httpx.Status(err) != http.StatusBadGateway {
			break
		}
		if err := guest.Wait(ctx, again); err != nil {
			return h, fault.Placed(err, c.name, "probe "+id)
		}
	}
	return c.answered(h, err), ctx.Err()
}

// answered says what the toolbox's answer means.
func (c *Client) answered(h providers.Health, err error) providers.Health {
	fact := sandbox.Evidence{What: "toolbox", Value: "answers", Source: "toolbox", At: c.now()}
	h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
	if err != nil {
		fact.Value = err.Error()
		h.Verdict, h.Condition = sandbox.Unknown, providers.ConditionUnknown
		if httpx.Status(err) == http.StatusBadGateway {
			h.Verdict, h.Condition = sandbox.False, providers.ConditionBroken
		}
	}
	h.Evidence = append(h.Evidence, fact)
	return h
}

// Quota reads what the organization may use, by region. Without a sandbox or a
// setting nobody tells which organization a key belongs to.
func (c *Client) Quota(ctx context.Context) ([]providers.Quota, error) {
	c.mu.Lock()
	id := c.account
	c.mu.Unlock()
	if id == "" {
		if err := c.rows(ctx, filter(providers.Query{}), func(wireSandbox) bool { return false }); err != nil {
			return nil, err
		}
		c.mu.Lock()
		id = c.account
		c.mu.Unlock()
	}
	if id == "" {
		return nil, fault.New(fault.KindUnsupported, "the organization is not known while it has no sandbox").At(c.name, "quota").WithHint("set DAYTONA_ORGANIZATION_ID")
	}
	var w wireUsage
	if _, err := c.http.JSON(ctx, httpx.Request{Op: "quota", Path: httpx.Path("organizations", id, "usage")}, &w); err != nil {
		return nil, err
	}
	regions, err := w.RegionUsage.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.name, "quota")
	}
	var all []providers.Quota
	for _, r := range regions {
		scope := r.RegionID
		if r.Class != "" {
			scope += " " + r.Class
		}
		all = append(all,
			providers.Quota{Name: "cpu", Scope: scope, Unit: "cores", Used: r.CPUUsed, Limit: r.CPU},
			providers.Quota{Name: "memory", Scope: scope, Unit: "GiB", Used: r.MemUsed, Limit: r.Mem},
			providers.Quota{Name: "disk", Scope: scope, Unit: "GiB", Used: r.DiskUsed, Limit: r.Disk})
	}
	return all, nil
}

// Check looks at the profile: address, key and its rights, clocks, what may run
// for ever, what failed where, and what is hidden.
func (c *Client) Check(ctx context.Context) []providers.Check {
	t := &tally{errors: map[string]int{}}
	if err := c.rows(ctx, filter(providers.Query{}), t.count); err != nil {
		return []providers.Check{{Check: "api", Verdict: sandbox.False, Message: err.Error(), Hint: fault.HintOf(err)}}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d sandboxes", t.all)}}
	found = append(found, c.rights(ctx))
	found = append(found, t.findings(c.name)...)
	lost := 0
	if err := c.rows(ctx, hidden(""), func(w wireSandbox) bool {
		if w.DesiredState == "destroyed" {
			lost++
		}
		return true
	}); err == nil && lost > 0 {
		found = append(found, providers.Check{Check: "hidden", Verdict: sandbox.False, Message: fmt.Sprintf("%d failed sandboxes are deleted for the API and may still be held by a runner", lost), Hint: "they use quota until the runner lets go: report them to whoever runs it"})
	}
	return append(found, providers.CheckClock(c.http))
}

// rights says what the key may not do.
func (c *Client) rights(ctx context.Context) providers.Check {
	var key wireKey
	if _, err := c.http.JSON(ctx, httpx.Request{Op: "key", Path: "/api-keys/current"}, &key); err != nil {
		return providers.Check{Check: "key", Verdict: sandbox.Unknown, Message: err.Error(), Info: true}
	}
	for right, verb := range map[string]string{"write:sandboxes": "create and stop", "delete:sandboxes": "delete"} {
		if !slices.Contains(key.Permissions, right) {
			return providers.Check{Check: "key", Verdict: sandbox.False, Message: "the key " + key.Name + " may not " + verb + " sandboxes", Hint: "it lacks the right " + right}
		}
	}
	return providers.Check{Check: "key", Verdict: sandbox.True, Message: "has the rights to create, stop and delete"}
}

// tally counts what doctor looks for.
type tally struct {
	all, endless int
	errors       map[string]int // by runner and reason
}

func (t *tally) count(w wireSandbox) bool {
	t.all++
	if stateOf(w) == sandbox.StateRunning && w.AutoStopInterval != nil && *w.AutoStopInterval == 0 && w.AutoDestroyAt.IsZero() {
		t.endless++
	}
	if stateOf(w) == sandbox.StateFailed {
		t.errors["runner "+w.RunnerID+": "+w.ErrorReason]++
	}
	return true
}

func (t *tally) findings(profile string) []providers.Check {
	var found []providers.Check
	if t.endless > 0 {
		found = append(found, providers.Check{Check: "endless", Verdict: sandbox.False, Message: fmt.Sprintf("%d running sandboxes have auto-stop off and no end of their own", t.endless), Hint: "`sbx ls --provider " + profile + " --older-than 1h` finds them"})
	}
	for _, where := range slices.Sorted(maps.Keys(t.errors)) {
		found = append(found, providers.Check{Check: "errors", Verdict: sandbox.False, Message: fmt.Sprintf("%d failed: %s", t.errors[where], where), Hint: "many on one runner are the runner's fault"})
	}
	return found
}

// Skew tells how far the API's clock is ahead of this machine's.
func (c *Client) Skew() (time.Duration, bool) { return c.http.Skew() }
