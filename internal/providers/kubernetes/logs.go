package kubernetes

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
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

// ReadsLogParts implements providers.LogPartReader.
func (*Client) ReadsLogParts() (previous, container bool) { return true, true }

// Logs reads the output of the program that create started, from its files inside; of any other sandbox the
// kubelet's log of its main container.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		op := "logs " + id
		if q.Follow {
			c.watches.Begin(id)
			defer c.watches.End(id)
			defer c.podWatches.keepOpen(id)()
		}
		o, err := c.readIfNotWatched(ctx, "logs", id)
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		state, raw := o.state()
		ofKubelet := !madeBySbx(o.Metadata) || q.Container != "" || q.Previous
		switch pod, has := o.pod(); {
		case ofKubelet && has && q.Container != "" && !slices.Contains(pod.containerNames(), q.Container):
			yield(
				sandbox.LogLine{},
				c.Fault(fault.KindUsage, op, "its pod has no container %q", q.Container).WithHint("it has %s", strings.Join(pod.containerNames(), ", ")),
			)
		case ofKubelet && !has:
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it has no pod: it is %s", raw).Inside())
		case ofKubelet:
			c.watches.End(id) // the kubelet's log tells no exit
			c.newKubeletLog(id, o, op, q).Deliver(ctx, yield)
		case state != sandbox.StateRunning:
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it is %s, and its output is stored in it", raw).Inside())
		default:
			lines, err := c.outputOf(ctx, o, op, id, q)
			if err != nil {
				yield(sandbox.LogLine{}, err)
				return
			}
			for line, err := range lines {
				if !yield(line, fault.Placed(err, c.Profile, op)) {
					return
				}
			}
		}
	}
}

// outputOf reads the output of the program that create started. One command follows it: an API server writes each to its
// audit log.
func (c *Client) outputOf(ctx context.Context, o object, op, id string, q providers.LogQuery) (iter.Seq2[sandbox.LogLine, error], error) {
	if q.Follow {
		at, err := c.placeIn(o, op)
		return c.watches.Follow(ctx, id, c.scriptsIn(at).Stream(), q), err
	}
	sh, err := c.shellIn(o, op, nil)
	return guest.Logs(ctx, sh, guest.MainTag, q), err
}

// kubeletLog is the kubelet's log of a container. Its streams are not told apart.
type kubeletLog struct {
	wirekit.LiveLog

	c                  *Client
	id, pod, container string
	opened             bool
}

func (c *Client) newKubeletLog(id string, o object, op string, q providers.LogQuery) *kubeletLog {
	pod, _ := o.pod()
	main, _ := o.mainContainer()
	r := &kubeletLog{c: c, id: id, pod: pod.Metadata.Name, container: cmp.Or(q.Container, main.Name)}
	r.LiveLog = wirekit.LiveLog{Query: q, Since: q.Since, Profile: c.Profile, Op: op, Open: r.open, Copy: copyLines, GoesOn: r.goesOn}
	return r
}

// open requests the log. The API takes whole seconds. Where it was open before, the controller may have made another pod.
func (r *kubeletLog) open(ctx context.Context) (*httpx.Stream, error) {
	if r.opened {
		o, err := r.c.readWithPods(ctx, "logs", r.id)
		if err != nil {
			return nil, err
		}
		if pod, has := o.pod(); has {
			r.pod = pod.Metadata.Name
		}
	}
	r.opened = true
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
	if r.Query.Previous {
		query.Set("previous", "true")
	}
	s, err := r.c.API.Stream(ctx, httpx.Request{Op: r.Op, Path: r.c.podPath(r.pod, "log"), Query: query, Quiet: r.Query.Follow, OneSandbox: true})
	if status := httpx.StatusOf(err); r.Query.Previous && status != nil &&
		status.Status == http.StatusBadRequest && strings.Contains(status.Message, "previous terminated container") {
		return nil, r.c.Fault(fault.KindNotFound, r.Op, "its container %s was not started again: there is no earlier run", r.container)
	}
	return s, err
}

// containerNames are the names of the containers of a pod, those of its start last.
func (w wireObject) containerNames() []string {
	var names []string
	for _, c := range slices.Concat(w.Spec.Containers, w.Spec.InitContainers) {
		names = append(names, c.Name)
	}
	return names
}

func copyLines(body io.Reader, take func(sandbox.LogLine) error) error {
	return wirekit.CopyTimedLines(body, "stdout", take)
}

func (r *kubeletLog) goesOn(ctx context.Context) (bool, error) {
	o, err := r.c.readWithPods(ctx, "logs", r.id)
	if wirekit.Missing(err) {
		return false, nil
	}
	state, _ := o.state()
	pod, has := o.pod()
	ended := o.mainStatus().State.Terminated
	if err != nil || !has || state != sandbox.StateRunning {
		return false, err
	}
	return ended == nil || pod.startsAgain(ended), nil
}
