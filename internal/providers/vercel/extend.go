package vercel

import (
	"context"
	"math"
	"net/http"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// shortestExtension is the least that the API adds.
const shortestExtension = time.Second

// Extend adds to the time limit of the session what is missing until then. The API adds it each time that it is asked
// (Vercel Sandbox API, extend-timeout), so that the request is never repeated.
func (c *Client) Extend(ctx context.Context, id string, until time.Time) (sandbox.Sandbox, error) {
	op := "extend " + id
	before, err := providers.ReadToExtend(ctx, c, id, until)
	if err != nil {
		return before, err
	}
	more := max(until.Sub(before.ExpiresAt), shortestExtension)
	var one wireOneSession
	_, err = c.API.JSON(ctx, httpx.Request{
		Op: op, Method: http.MethodPost, Path: sessionPath(before.ID, "extend-timeout"), Query: c.teamQuery(), Once: true,
		JSON: map[string]any{"duration": int64(math.Ceil(more.Seconds() * 1000))},
	}, &one)
	switch {
	case err == nil:
		err = providers.CheckAnswerID(c.Profile, op, before.ID, one.Session.ID)
	case fault.KindOf(err) == fault.KindGone:
		err = c.confirmGone(ctx, "extend", id, before.ID, err)
	}
	return before, providers.ExtensionFailed(err)
}
