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

// Terminate deletes a running sandbox. Of a paused one DELETE destroys the
// snapshot, so without Delete that is refused (DESIGN section 2, Ending).
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	if !o.Delete {
		s := o.Seen
		if s == nil {
			now, err := c.Get(ctx, id)
			if err != nil {
				return err
			}
			s = &now
		}
		if s.State == sandbox.StatePaused {
			return fault.New(fault.KindRefused, "needs_delete: it is paused, and the API can only destroy its snapshot").
				At(c.name, "terminate "+id).WithHint("`--delete` destroys the snapshot too")
		}
	}
	op := "terminate " + id
	res, err := c.api.Do(ctx, httpx.Request{Op: op, Method: http.MethodDelete, Path: httpx.Path("sandboxes", id)})
	if err == nil && res.Status != http.StatusNoContent {
		return fault.New(fault.KindUnavailable, "HTTP %d came where 204 is due: whether it was heeded is not known", res.Status).At(c.name, op).
			WithHint("something between here and the API may answer in its place")
	}
	return err
}

// maxLifetime is how long a VM may run at most, from the start of its current run
// (E2B, limits: 24 hours; other clouds of this API allow less).
const maxLifetime = 24 * time.Hour

// VerifyEnd asks the sandbox's host: a 404 of the API alone proves nothing, since
// the API forgets a sandbox before its node has ended it, and also when the node
// fails to (E2B API, DELETE). The edge at the host knows a sandbox from the catalog
// that the API clears with its record, so after a DELETE that failed it is no witness
// of its own: the only one is that no VM runs longer than maxLifetime.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	h := c.look(ctx, id)
	seen := []sandbox.Evidence{{What: "host", Value: h.said, Source: "sandbox host", At: c.now()}}
	switch {
	case h.err != nil && ctx.Err() != nil:
		return providers.Proof{}, h.err
	case h.missing():
		proof := providers.Proof{Ended: sandbox.True, Evidence: seen}
		if r := q.Request; r != nil && q.Now.Sub(startedBefore(r)) > maxLifetime {
			proof.Independent = true
			proof.Evidence = append(proof.Evidence, sandbox.Evidence{What: "lifetime", Value: "over: no VM runs longer than " + sandbox.FormatDuration(maxLifetime), Source: "limits of the API", At: c.now()})
		}
		return proof, nil
	case h.answers():
		return providers.Proof{Ended: sandbox.False, Reason: "its host still answers", Evidence: seen}, nil
	}
	return providers.Proof{Ended: sandbox.Unknown, Reason: "its host says " + h.said, Evidence: seen}, nil
}

// startedBefore is a moment by which the run of a sandbox that was asked to end had begun.
func startedBefore(r *sandbox.EndRequest) time.Time {
	if r.StartedAt.IsZero() {
		return r.At
	}
	return r.StartedAt
}

// hostLook is what a sandbox's host said to a GET of /health.
type hostLook struct {
	status int
	said   string
	err    error
}

// look asks a sandbox's host whether envd is well; that needs no token and
// changes nothing of a running one. It must not be asked of a paused one, which
// traffic may wake.
func (c *Client) look(ctx context.Context, id string) hostLook {
	res, err := c.hosts.Do(ctx, c.toHost(httpx.Request{Op: "probe " + id, Path: "/health", Once: true}, id, ""))
	if err == nil {
		return hostLook{status: res.Status, said: "HTTP 204"}
	}
	if s := httpx.StatusOf(err); s != nil {
		return hostLook{s.Status, s.Error(), err}
	}
	return hostLook{0, err.Error(), err}
}

func (h hostLook) answers() bool { return h.err == nil }

// missing: the edge answers 502 both for a sandbox that is not there and for one
// whose port is closed; the message tells them apart.
func (h hostLook) missing() bool {
	return h.status == http.StatusBadGateway && strings.Contains(strings.ToLower(h.said), "not found")
}

func (h hostLook) closed() bool {
	return h.status == http.StatusBadGateway && strings.Contains(strings.ToLower(h.said), "port is not open")
}
