package e2b

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Probe reads the record and asks the host of a running sandbox. A paused one is not asked,
// since traffic may wake it.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	w, err := c.detail(ctx, id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: []sandbox.Evidence{c.Evidence("state", w.State, "API")}}
	switch w.State {
	case "paused":
		h.Verdict, h.Condition = sandbox.False, providers.ConditionResumable
	case "running":
		answer := c.probeHost(ctx, id)
		if answer.portClosed() && wirekit.Sleep(ctx, probePause) == nil { // envd may be restarting
			answer = c.probeHost(ctx, id)
		}
		if answer.err != nil && ctx.Err() != nil {
			return providers.Health{}, answer.err
		}
		h.Evidence = append(h.Evidence, c.Evidence("host", answer.said, "sandbox host"))
		h.Verdict, h.Condition = answer.health()
	}
	return h, nil
}

// probePause is the time between two probes of a closed port.
const probePause = 2 * time.Second

// health is what an answer of the host means for a sandbox in state running (E2B API, edge
// answers).
func (h hostAnswer) health() (sandbox.Verdict, providers.Condition) {
	switch {
	case h.err == nil:
		return sandbox.True, providers.ConditionHealthy
	case h.isMissing(): // the API has a record and the edge has not: one of them is wrong
		return sandbox.Unknown, providers.ConditionUnknown
	case h.portClosed():
		return sandbox.False, providers.ConditionBroken
	case h.status == http.StatusConflict:
		return sandbox.Unknown, providers.ConditionWait
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// Exit is the exit of the program that create started, from its file inside.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	w, err := c.detail(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case w.Metadata[sandbox.LabelRun] == "":
		return nil, fault.Placed(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), c.Profile, "exit "+id)
	case w.State != "running":
		return nil, c.Fault(fault.KindUnavailable, "exit "+id, "it is %s, and looking inside would wake it", w.State)
	}
	exit, err := guest.Exit(ctx, c.shellOf(id, nil), w.Metadata[sandbox.LabelRun])
	return exit, fault.Placed(err, c.Profile, "exit "+id)
}

// Check checks the profile: the API, the key and the clocks.
func (c *Client) Check(ctx context.Context) []providers.Check {
	running, paused := 0, 0
	for s, err := range c.List(ctx, providers.Query{}) {
		if err != nil {
			return []providers.Check{wirekit.FailedCheck("api", err)}
		}
		if s.State == sandbox.StatePaused {
			paused++
		} else {
			running++
		}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d running, %d paused", running, paused)}}
	return append(found, providers.CheckClock(c.API))
}
