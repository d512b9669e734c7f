package kubernetes

import (
	"context"
	"io"
	"iter"
	"net/url"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// CapturesOutput is false: no log has the output of `kubectl exec` or `sbx exec`, and the API does not say whether
// such a command runs.
func (*Client) CapturesOutput(sandbox.Sandbox) bool { return false }

// Logs reads the output of the program that create started, from its files inside; of any other sandbox the
// kubelet's log of its main container.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		op := "logs " + id
		o, err := c.read(ctx, "logs", id)
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		state, raw := o.state()
		switch _, has := o.pod(); {
		case !madeBySbx(o.Metadata) && !has:
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it has no pod: it is %s", raw).Inside())
		case !madeBySbx(o.Metadata):
			c.newKubeletLog(id, o, op, q).Deliver(ctx, yield)
		case state != sandbox.StateRunning:
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it is %s, and its output is stored in it", raw).Inside())
		default:
			sh, err := c.shellIn(o, op, nil)
			if err != nil {
				yield(sandbox.LogLine{}, err)
				return
			}
			for line, err := range guest.Logs(ctx, sh, guest.MainTag, q) {
				if !yield(line, fault.Placed(err, c.Profile, op)) {
					return
				}
			}
		}
	}
}

// kubeletLog is the kubelet's log of a container. Its streams are not told apart.
type kubeletLog struct {
	wirekit.LiveLog

	c                  *Client
	id, pod, container string
}

func (c *Client) newKubeletLog(id string, o object, op string, q providers.LogQuery) *kubeletLog {
	pod, _ := o.pod()
	main, _ := o.mainContainer()
	r := &kubeletLog{c: c, id: id, pod: pod.Metadata.Name, container: main.Name}
	r.LiveLog = wirekit.LiveLog{Query: q, Since: q.Since, Profile: c.Profile, Op: op, Open: r.open, Copy: copyLines, GoesOn: r.goesOn}
	return r
}

// open requests the log. The API takes whole seconds.
func (r *kubeletLog) open(ctx context.Context) (*httpx.Stream, error) {
	query := url.Values{"container": {r.container}, "timestamps": {"true"}}
	if r.Query.Tail > 0 {
		query.Set("tailLines", strconv.Itoa(r.Query.Tail))
	}
	if !r.Since.IsZero() {
		query.Set("sinceTime", r.Since.UTC().Truncate(time.Second).Format(time.RFC3339))
	}
	if r.Query.Follow {
		query.Set("follow", "true")
	}
	return r.c.API.Stream(ctx, httpx.Request{Op: r.Op, Path: r.c.podPath(r.pod, "log"), Query: query, Quiet: r.Query.Follow, OneSandbox: true})
}

func copyLines(body io.Reader, take func(sandbox.LogLine) error) error {
	return wirekit.CopyTimedLines(body, "stdout", take)
}

func (r *kubeletLog) goesOn(ctx context.Context) (bool, error) {
	o, err := r.c.read(ctx, "logs", r.id)
	if wirekit.Missing(err) {
		return false, nil
	}
	state, _ := o.state()
	return state == sandbox.StateRunning && o.mainStatus().State.Terminated == nil, err
}
