package daytona

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Extend sets the time to live, in whole minutes. The API counts it from now and takes a shorter one, too (Daytona API,
// setTtl). The auto-stop of what sbx made is as long as its life (createBody), and grows with it; that of others stays:
// whoever set it wants what is idle to stop.
func (c *Client) Extend(ctx context.Context, id string, until time.Time) (sandbox.Sandbox, error) {
	op := "extend " + id
	before, err := providers.ReadToExtend(ctx, c, id, until)
	if err != nil {
		return before, err
	}
	life, err := c.LifeUntil(op, until)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	idle := until.Sub(cmp.Or(before.LastActivityAt, before.CreatedAt))
	if before.Labels[sandbox.LabelOwner] != "" && before.IdleStop > 0 && before.IdleStop < idle {
		if err := c.setMinutes(ctx, op, before.ID, "autostop", idle); err != nil {
			return sandbox.Sandbox{}, err
		}
	}
	return before, c.setMinutes(ctx, op, before.ID, "ttl", life)
}

// setMinutes sets one of the intervals of a sandbox.
func (c *Client) setMinutes(ctx context.Context, op, id, what string, d time.Duration) error {
	var now wireSandbox
	_, err := c.API.JSON(ctx, httpx.Request{
		Op: op, Method: http.MethodPost, Path: httpx.Path("sandbox", id, what, strconv.Itoa(int(math.Ceil(d.Minutes())))),
	}, &now)
	if err == nil {
		err = providers.CheckAnswerID(c.Profile, op, id, now.ID)
	}
	return providers.ExtensionFailed(c.withRight(op, err))
}
