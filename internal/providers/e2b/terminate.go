package e2b

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Terminate deletes a running sandbox. A DELETE of a paused one destroys its snapshot, so
// without Delete it is refused.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	if !o.Delete {
		s := o.Seen
		if s == nil {
			now, err := c.Get(ctx, id)
			if err != nil {
				return providers.NothingSent(err)
			}
			s = &now
		}
		if s.State == sandbox.StatePaused {
			return c.Fault(fault.KindRefused, "terminate "+id, "needs_delete: it is paused, and the API can only delete it with its snapshot").
				WithHint("`--delete` also deletes the snapshot")
		}
	}
	op := "terminate " + id
	res, err := c.API.Do(ctx, httpx.Request{Op: op, Method: http.MethodDelete, Path: httpx.Path("sandboxes", id)})
	if err == nil && res.Status != http.StatusNoContent {
		return c.Fault(fault.KindUnavailable, op, "HTTP %d instead of 204: unknown whether the request was carried out", res.Status).
			WithHint("a proxy may have answered instead of the API")
	}
	return providers.EndFailed(err)
}

// maxLifetime is the longest time that a VM may run since the start of its current run (E2B,
// limits: 24 hours; other clouds of this API allow less).
const maxLifetime = 24 * time.Hour

// VerifyEnd asks the sandbox's host: a 404 of the API alone is no proof, since the API drops
// the record before the node has ended the VM, and also when the node fails (E2B API, DELETE).
// The edge at the host uses a catalog that the API clears together with the record, so after a
// DELETE that failed, or without one, it is no independent evidence: that is only the time at which its own
// limit ends the VM, or the fact that none runs longer than maxLifetime.
//
// The host says the same of every paused sandbox, and may wake one: after the DELETE of a paused one only
// the time counts in which a resume that was in flight would have brought it back.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	if r := q.Request; r != nil && r.State == sandbox.StatePaused {
		return c.pausedProof(q), nil
	}
	h := c.probeHost(ctx, id)
	seen := []sandbox.Evidence{c.Evidence("host", h.said, "sandbox host")}
	switch {
	case h.err != nil && ctx.Err() != nil:
		return providers.Proof{}, h.err
	case h.isMissing():
		proof := providers.Proof{Ended: sandbox.True, SameStore: true, IndependentFrom: latestEnd(q), Evidence: seen}
		if proof.Independent = !proof.IndependentFrom.IsZero() && q.Now.After(proof.IndependentFrom); proof.Independent {
			proof.Evidence = append(proof.Evidence, c.Evidence("lifetime", "ended at "+proof.IndependentFrom.UTC().Format(time.RFC3339), "limits of the API"))
		}
		return proof, nil
	case h.err == nil:
		return providers.Proof{Ended: sandbox.False, Reason: "its host still answers", Evidence: seen}, nil
	}
	return providers.Proof{Ended: sandbox.Unknown, Reason: "its host answers " + h.said, Evidence: seen}, nil
}

// resumeTime is how long a missing record may be that of a sandbox which comes back: a resume takes about a second
// (E2B, persistence), and the API publishes the sandbox again at its end, whatever was deleted meanwhile.
const resumeTime = 20 * time.Second

// pausedProof is the proof for a sandbox that was paused when its DELETE was sent.
func (c *Client) pausedProof(q providers.EndQuery) providers.Proof {
	after := sandbox.FormatDuration(resumeTime)
	if q.Now.Sub(q.Since) < resumeTime {
		return providers.Proof{Ended: sandbox.Unknown, Reason: "it was paused: a resume in flight may bring it back within " + after}
	}
	return providers.Proof{
		Ended: sandbox.True, SameStore: true,
		Evidence: []sandbox.Evidence{c.Evidence("record", "missing for "+after+" after the delete of a paused one", "API")},
	}
}

// latestEnd is the latest time at which the VM of a missing record ends; zero = not known. The limit of the
// sandbox itself is kept by the API, which may fail to tell the node: after a DELETE that was refused or not
// answered only maxLifetime counts.
func latestEnd(q providers.EndQuery) time.Time {
	if r := q.Request; r != nil && (!r.NotFound || q.ExpiresAt.IsZero()) {
		return latestStart(r).Add(maxLifetime)
	}
	return q.ExpiresAt
}

// latestStart is the latest possible start of the run that the request was to end.
func latestStart(r *sandbox.EndRequest) time.Time {
	if r.StartedAt.IsZero() {
		return r.At
	}
	return r.StartedAt
}

// hostAnswer is the answer of a sandbox's host to GET /health.
type hostAnswer struct {
	status int
	said   string
	err    error
}

// probeHost asks a sandbox's host for the health of envd, which needs no token and does not
// affect a running sandbox. It must not be used for a paused one, which traffic may wake.
func (c *Client) probeHost(ctx context.Context, id string) hostAnswer {
	res, err := c.hosts.Do(ctx, c.toHost(httpx.Request{Op: "probe " + id, Path: "/health", Once: true, Fresh: true}, id, ""))
	if err == nil {
		return hostAnswer{status: res.Status, said: "HTTP 204"}
	}
	return toHostAnswer(err)
}

// toHostAnswer is the answer that an error of a request to the host has; the zero value for nil.
func toHostAnswer(err error) hostAnswer {
	if err == nil {
		return hostAnswer{}
	}
	if s := httpx.StatusOf(err); s != nil {
		return hostAnswer{s.Status, s.Error(), err}
	}
	return hostAnswer{0, err.Error(), err}
}

// isMissing says that the edge has no such sandbox. It answers 502 also for a closed port; only
// the message differs.
func (h hostAnswer) isMissing() bool {
	return h.status == http.StatusBadGateway && strings.Contains(strings.ToLower(h.said), "not found")
}

func (h hostAnswer) portClosed() bool {
	return h.status == http.StatusBadGateway && strings.Contains(strings.ToLower(h.said), "port is not open")
}
