package e2b

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// CapturesOutput is false: the API's log holds what envd did, and an agent that is one
// long command prints each second and never appears in it (measured with envd 0.6.13).
// The files of what sbx created hold that program's output, and not that of commands
// which other clients ran one after the other: nothing keeps when those ended.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return false }

// UsageHistory reads the samples of the metrics API: every 5 s, kept for about 7
// days (E2B documentation, metrics). The first one comes 5 to 10 s after the start.
func (c *Client) UsageHistory(ctx context.Context, id string, since time.Time) ([]sandbox.Usage, error) {
	samples, err := c.samples(ctx, id, since)
	switch {
	case absent(err):
		return nil, fault.New(fault.KindUnsupported, "this API keeps no samples").At(c.name, "usage "+id)
	case err != nil:
		return nil, err
	}
	all := make([]sandbox.Usage, 0, len(samples))
	for _, m := range samples {
		if m.TimestampUnix > 0 { // one without a time is of no use in a history
			all = append(all, c.sampled(m))
		}
	}
	slices.SortStableFunc(all, func(a, b sandbox.Usage) int { return a.At.Compare(b.At) })
	return all, nil
}

// wireProcesses is the answer of envd's process.Process/List.
type wireProcesses struct {
	Processes []struct {
		PID    int64  `json:"pid"`
		Tag    string `json:"tag"`
		Config struct {
			Cmd  string   `json:"cmd"`
			Args []string `json:"args"`
		} `json:"config"`
	} `json:"processes"`
}

// Processes asks envd which programs it has started and not seen to end, whoever
// asked for them. What those started in turn is not in its table: a background
// process outlives its shell unseen.
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	w, err := c.detail(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case w.State != "running":
		return nil, fault.New(fault.KindUnavailable, "it is %s, and looking inside would wake it", w.State).At(c.name, "processes "+id)
	}
	var got wireProcesses
	r := c.toHost(httpx.Request{Op: "processes " + id, Method: http.MethodPost, Path: "/process.Process/List", JSON: struct{}{}, Again: true}, id, w.EnvdAccessToken)
	if _, err := c.hosts.JSON(ctx, r, &got); err != nil {
		return nil, err
	}
	all := make([]providers.Process, 0, len(got.Processes))
	for _, p := range got.Processes {
		if strings.HasPrefix(p.Tag, lookMark) {
			continue
		}
		all = append(all, providers.Process{PID: p.PID, Args: append([]string{p.Config.Cmd}, p.Config.Args...)})
	}
	return all, nil
}

// samples reads what the metrics API keeps since then; legacy clouds take no range.
func (c *Client) samples(ctx context.Context, id string, since time.Time) ([]wireMetric, error) {
	var samples httpx.List[wireMetric]
	query := url.Values{}
	if !c.legacy {
		query.Set("start", strconv.FormatInt(since.Unix(), 10))
		query.Set("end", strconv.FormatInt(c.now().Unix(), 10))
	}
	_, err := c.api.JSON(ctx, httpx.Request{Op: "usage " + id, Path: httpx.Path("sandboxes", id, "metrics"), Query: query}, &samples)
	if err != nil {
		return nil, err
	}
	rows, err := samples.Rows()
	return rows, fault.Placed(err, c.name, "usage "+id)
}
