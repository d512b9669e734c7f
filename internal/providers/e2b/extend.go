package e2b

import (
	"context"
	"math"
	"net/http"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Extend sets the time limit. The API counts it from now and takes a shorter one, too (E2B API, POST
// /sandboxes/{id}/timeout). A connect only lengthens it, and resumes what is paused.
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
	_, err = c.API.Do(ctx, httpx.Request{
		Op: op, Method: http.MethodPost, Path: httpx.Path("sandboxes", id, "timeout"), JSON: map[string]any{"timeout": int64(math.Ceil(life.Seconds()))},
	})
	return before, providers.ExtensionFailed(err)
}
