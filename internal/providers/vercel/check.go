package vercel

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Check looks at the profile: do token, team and project lead to a list, do the
// clocks agree, does anything run beyond its time, what is kept and billed.
func (c *Client) Check(ctx context.Context) []providers.Check {
	running, stopped, overdue := 0, 0, 0
	for s, err := range c.List(ctx, providers.Query{}) {
		if err != nil {
			return []providers.Check{c.unreached(err), providers.CheckClock(c.http)}
		}
		switch s.State {
		case sandbox.StateRunning:
			running++
			if !s.ExpiresAt.IsZero() && s.ExpiresAt.Before(c.now().Add(-httpx.SkewTolerated)) {
				overdue++
			}
		case sandbox.StateStopped:
			stopped++
		default:
		}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d running, %d stopped", running, stopped)}}
	if overdue > 0 {
		found = append(found, providers.Check{
			Check: "overdue", Verdict: sandbox.False, Message: fmt.Sprintf("%d sandboxes run beyond their time", overdue),
			Hint: "`sbx ls --provider " + c.name + "` shows when each should have ended",
		})
	}
	if stopped > 0 {
		found = append(found, providers.Check{
			Check: "snapshots", Verdict: sandbox.True, Info: true, Message: fmt.Sprintf("%d stopped sandboxes may keep billed snapshots", stopped),
			Hint: "`sbx terminate REF --delete` destroys one with its snapshot",
		})
	}
	return append(append(found, c.token()...), providers.CheckClock(c.http))
}

// unreached says what is wrong where the list cannot be read: the API answers alike
// for a wrong project and for one that the token may not see.
func (c *Client) unreached(err error) providers.Check {
	k := providers.Check{Check: "api", Verdict: sandbox.False, Message: err.Error(), Hint: fault.HintOf(err)}
	switch httpx.Status(err) {
	case http.StatusUnauthorized:
		k.Check, k.Hint = "token", "the token is wrong or has expired: set VERCEL_TOKEN"
	case http.StatusForbidden:
		k.Check, k.Hint = "team", "the token may not see team "+c.team+": is VERCEL_TEAM_ID its id?"
	case http.StatusNotFound, http.StatusBadRequest:
		k.Check, k.Hint = "project", "team "+c.team+" has no project "+c.project+": is VERCEL_PROJECT_ID its id?"
	case http.StatusGone:
		k.Check, k.Hint = "project", "team "+c.team+" or project "+c.project+" has been deleted"
	}
	return k
}

// token says when an OIDC token ends, which they do within hours.
func (c *Client) token() []providers.Check {
	left := c.expires.Sub(c.now())
	switch {
	case c.expires.IsZero() || left > time.Hour:
		return nil
	case left <= 0:
		return []providers.Check{{Check: "token", Verdict: sandbox.False, Message: "the token has expired", Hint: "pull a new OIDC token, or set an access token"}}
	}
	return []providers.Check{{Check: "token", Verdict: sandbox.True, Info: true, Message: "the token expires in " + sandbox.FormatDuration(left)}}
}

// Skew tells how far the API's clock is ahead of this machine's.
func (c *Client) Skew() (time.Duration, bool) { return c.http.Skew() }
