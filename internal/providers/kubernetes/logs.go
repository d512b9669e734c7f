package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/url"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// followOutage is how long a log that is followed may be lost.
const followOutage = time.Minute

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
		switch pod, has := o.pod(); {
		case !madeBySbx(o.Metadata) && !has:
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it has no pod: it is %s", raw))
		case !madeBySbx(o.Metadata):
			main, _ := o.mainContainer()
			r := &kubeletLog{c: c, id: id, pod: pod.Metadata.Name, container: main.Name, op: op, q: q, since: q.Since}
			r.deliver(ctx, yield)
		case state != sandbox.StateRunning:
			yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it is %s, and its output is stored in it", raw))
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

// kubeletLog is the position of one reader in the kubelet's log of a container. Its streams are not told apart.
type kubeletLog struct {
	c                      *Client
	id, pod, container, op string
	q                      providers.LogQuery
	since                  time.Time // lines before it were read, or are not wanted
	heard                  wirekit.Pulse
}

var errEnough = errors.New("the reader wants no more")

// deliver yields the lines. A log that is followed and lost is opened again behind its last line.
func (r *kubeletLog) deliver(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	pauses := poll.NewBackoff(50*time.Millisecond, time.Second)
	var lost time.Time // since when nothing has come; zero = it has
	for {
		before := r.since
		err := r.read(ctx, func(l sandbox.LogLine) bool { return yield(l, nil) })
		if r.since.After(before) {
			lost = time.Time{}
			pauses.Reset()
		}
		if lost.IsZero() {
			lost = time.Now()
		}
		switch {
		case err == nil, errors.Is(err, errEnough), errors.Is(err, wirekit.ErrOver):
			return
		case ctx.Err() != nil:
			yield(sandbox.LogLine{}, fault.Placed(wirekit.ContextFault(ctx), r.c.Profile, r.op))
			return
		case !r.q.Follow || fault.KindOf(err) != fault.KindUnavailable || time.Since(lost) >= followOutage || pauses.Sleep(ctx) != nil:
			yield(sandbox.LogLine{}, fault.Placed(err, r.c.Profile, r.op))
			return
		}
		r.q.Tail = 0
	}
}

// read reads the log from its position to its end. The API takes whole seconds, so that lines of the first one are
// left out here.
func (r *kubeletLog) read(ctx context.Context, take func(sandbox.LogLine) bool) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	query := url.Values{"container": {r.container}, "timestamps": {"true"}}
	if r.q.Tail > 0 {
		query.Set("tailLines", strconv.Itoa(r.q.Tail))
	}
	if !r.since.IsZero() {
		query.Set("sinceTime", r.since.UTC().Truncate(time.Second).Format(time.RFC3339))
	}
	if r.q.Follow {
		query.Set("follow", "true")
	}
	s, err := r.c.API.Stream(inner, httpx.Request{Op: r.op, Path: r.c.podPath(r.pod, "log"), Query: query, Quiet: r.q.Follow})
	if err != nil {
		return err
	}
	defer func() { _ = s.Body.Close() }()
	if r.q.Follow {
		r.heard.Beat()
		go r.heard.Watch(inner, r.goesOn, cancel)
	}
	err = r.copyLines(s.Body, take)
	if cause := context.Cause(inner); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

func (r *kubeletLog) goesOn(ctx context.Context) (bool, error) {
	o, err := r.c.read(ctx, "logs", r.id)
	if wirekit.Missing(err) {
		return false, nil
	}
	state, _ := o.state()
	return state == sandbox.StateRunning && o.mainStatus().State.Terminated == nil, err
}

// copyLines takes the lines of a log, each of which begins with its time.
func (r *kubeletLog) copyLines(body io.Reader, take func(sandbox.LogLine) bool) error {
	lines := wirekit.LineSplitter{Stream: "stdout"}
	piece := make([]byte, 32<<10)
	for {
		n, err := body.Read(piece)
		r.heard.Beat()
		found := lines.Add(piece[:n], nil)
		if errors.Is(err, io.EOF) {
			found = lines.Flush(found)
		}
		for _, l := range found {
			at, text := cutTime([]byte(l.Text))
			l.At, l.Text = at, string(text)
			if !at.IsZero() && at.Before(r.since) {
				continue
			}
			if next := at.Add(time.Nanosecond); !at.IsZero() && next.After(r.since) {
				r.since = next
			}
			if !take(l) {
				return errEnough
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// cutTime parts the time from a line; zero where there is none.
func cutTime(line []byte) (time.Time, []byte) {
	stamp, text, found := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp[:min(len(stamp), len(time.RFC3339Nano))]))
	if err != nil || !found {
		return time.Time{}, line
	}
	return at.UTC(), text
}
