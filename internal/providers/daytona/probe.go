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
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// probePause is the time between two probes of a toolbox that does not answer: a daemon that
// is being restarted answers the second one.
const probePause = 2 * time.Second

// Probe reads the record and, in state `started`, asks the toolbox, twice if the first answer
// is a 502: after memory ran out inside, a sandbox stays `started` for minutes.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	w, err := c.detail(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: []sandbox.Evidence{c.Evidence("state", w.State, "API")}}
	switch s := stateOf(w); {
	case isTransitional(s):
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
	for second := false; ; second = true {
		_, err = c.API.Do(ctx, c.toolbox(httpx.Request{Op: "probe " + id, Path: "/version", Once: true}, w.ID, true))
		if err == nil || second || httpx.Status(err) != http.StatusBadGateway {
			break
		}
		if err := wirekit.Sleep(ctx, probePause); err != nil {
			return h, fault.Placed(err, c.Profile, "probe "+id)
		}
	}
	return c.toolboxHealth(h, err), ctx.Err()
}

func (c *Client) toolboxHealth(h providers.Health, err error) providers.Health {
	fact := c.Evidence("toolbox", "answers", "toolbox")
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

// Quota reads the limits of the organization, by region. The organization of a key is known
// from the settings or from any sandbox.
func (c *Client) Quota(ctx context.Context) ([]providers.Quota, error) {
	id := c.knownAccount()
	if id == "" {
		if err := c.eachRow(ctx, listQuery(providers.Query{}), func(wireSandbox) bool { return false }); err != nil {
			return nil, err
		}
		id = c.knownAccount()
	}
	if id == "" {
		return nil, c.Fault(fault.KindUnsupported, "quota", "the organization is not known while it has no sandbox").WithHint("set DAYTONA_ORGANIZATION_ID")
	}
	var w wireUsage
	if _, err := c.API.JSON(ctx, httpx.Request{Op: "quota", Path: httpx.Path("organizations", id, "usage")}, &w); err != nil {
		return nil, err
	}
	regions, err := w.RegionUsage.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.Profile, "quota")
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

// Check checks the profile: address, key and its permissions, clocks, sandboxes without an
// end, failed ones by runner, and hidden ones.
func (c *Client) Check(ctx context.Context) []providers.Check {
	t := &doctorCounts{errors: map[string]int{}}
	if err := c.eachRow(ctx, listQuery(providers.Query{}), t.countRow); err != nil {
		return []providers.Check{wirekit.FailedCheck("api", err)}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d sandboxes", t.all)}}
	found = append(found, c.checkPermissions(ctx))
	found = append(found, t.findings(c.Profile)...)
	lost := 0
	if err := c.eachRow(ctx, hiddenQuery(""), func(w wireSandbox) bool {
		if w.DesiredState == "destroyed" {
			lost++
		}
		return true
	}); err == nil && lost > 0 {
		found = append(found, providers.Check{Check: "hidden", Verdict: sandbox.False, Message: fmt.Sprintf("%d failed sandboxes are deleted for the API and may still be held by a runner", lost), Hint: "they use quota until the runner lets go: report them to whoever runs it"})
	}
	return append(found, providers.CheckClock(c.API))
}

func (c *Client) knownAccount() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.account
}

func (c *Client) checkPermissions(ctx context.Context) providers.Check {
	var key wireKey
	if _, err := c.API.JSON(ctx, httpx.Request{Op: "key", Path: "/api-keys/current"}, &key); err != nil {
		return providers.Check{Check: "key", Verdict: sandbox.Unknown, Message: err.Error(), Info: true}
	}
	for right, verb := range map[string]string{"write:sandboxes": "create and stop", "delete:sandboxes": "delete"} {
		if !slices.Contains(key.Permissions, right) {
			return providers.Check{Check: "key", Verdict: sandbox.False, Message: "the key " + key.Name + " may not " + verb + " sandboxes", Hint: "it lacks the right " + right}
		}
	}
	return providers.Check{Check: "key", Verdict: sandbox.True, Message: "has the rights to create, stop and delete"}
}

type doctorCounts struct {
	all, endless int
	errors       map[string]int // by runner and reason
}

func (t *doctorCounts) countRow(w wireSandbox) bool {
	t.all++
	if stateOf(w) == sandbox.StateRunning && w.AutoStopInterval != nil && *w.AutoStopInterval == 0 && w.AutoDestroyAt.IsZero() {
		t.endless++
	}
	if stateOf(w) == sandbox.StateFailed {
		t.errors["runner "+w.RunnerID+": "+w.ErrorReason]++
	}
	return true
}

func (t *doctorCounts) findings(profile string) []providers.Check {
	var found []providers.Check
	if t.endless > 0 {
		found = append(found, providers.Check{Check: "endless", Verdict: sandbox.False, Message: fmt.Sprintf("%d running sandboxes have auto-stop off and no end of their own", t.endless), Hint: "`sbx ls --provider " + profile + " --older-than 1h` finds them"})
	}
	for _, where := range slices.Sorted(maps.Keys(t.errors)) {
		found = append(found, providers.Check{Check: "errors", Verdict: sandbox.False, Message: fmt.Sprintf("%d failed: %s", t.errors[where], where), Hint: "many on one runner are the runner's fault"})
	}
	return found
}
