package e2b

import (
	"context"
	"net/http"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// Probe asks the API, then, of a running sandbox only, its host: traffic may wake
// a paused one.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	w, err := c.detail(ctx, id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: []sandbox.Evidence{c.fact("state", w.State, "API")}}
	switch w.State {
	case "paused":
		h.Verdict, h.Condition = sandbox.False, providers.ConditionResumable
	case "running":
		look := c.look(ctx, id)
		if look.closed() && guest.Wait(ctx, betweenLooks) == nil { // envd may be starting anew
			look = c.look(ctx, id)
		}
		if look.err != nil && ctx.Err() != nil {
			return providers.Health{}, look.err
		}
		h.Evidence = append(h.Evidence, c.fact("host", look.said, "sandbox host"))
		h.Verdict, h.Condition = look.judge()
	}
	return h, nil
}

// betweenLooks is how far two looks at a port that is not open are apart.
const betweenLooks = 2 * time.Second

// judge says what an answer of the host means for a sandbox that the API calls
// running (E2B API, edge answers).
func (h hostLook) judge() (sandbox.Verdict, providers.Condition) {
	switch {
	case h.answers():
		return sandbox.True, providers.ConditionHealthy
	case h.missing(): // the edge's catalog lacks it while the API has it: one of them is wrong
		return sandbox.Unknown, providers.ConditionUnknown
	case h.closed():
		return sandbox.False, providers.ConditionBroken
	case h.status == http.StatusConflict:
		return sandbox.Unknown, providers.ConditionWait
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

func (c *Client) fact(what, value, source string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: c.now()}
}

// Exit is that of the program which create started, from its file inside.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	w, err := c.detail(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case w.Metadata[sandbox.LabelRun] == "":
		return nil, fault.Placed(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), c.name, "exit "+id)
	case w.State != "running":
		return nil, fault.New(fault.KindUnavailable, "it is %s, and looking inside would wake it", w.State).At(c.name, "exit "+id)
	}
	exit, err := guest.Exit(ctx, c.shellOf(id), w.Metadata[sandbox.LabelRun])
	return exit, fault.Placed(err, c.name, "exit "+id)
}

// Check looks at the profile: does the API answer, is the key good, do the clocks
// agree.
func (c *Client) Check(ctx context.Context) []providers.Check {
	running, paused := 0, 0
	for s, err := range c.List(ctx, providers.Query{}) {
		if err != nil {
			return []providers.Check{{Check: "api", Verdict: sandbox.False, Message: err.Error(), Hint: fault.HintOf(err)}}
		}
		if s.State == sandbox.StatePaused {
			paused++
		} else {
			running++
		}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: counted(running, paused)}}
	return append(found, providers.CheckClock(c.api))
}

// Skew tells how far the API's clock is ahead of this machine's.
func (c *Client) Skew() (time.Duration, bool) { return c.api.Skew() }
