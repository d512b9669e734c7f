package e2b

import (
	"context"
	"fmt"
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

// Probe reads the record and asks the host of a running sandbox. A paused one is not asked,
// since traffic may wake it. What the host has said in the same look (httpx.Look) counts as the first
// of its answers; its record is then read just before the second one.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	answer := toHostAnswer(httpx.LookAnswer(ctx))
	waited := answer.portClosed() && wirekit.Sleep(ctx, probePause) == nil
	w, err := c.detail(ctx, id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: []sandbox.Evidence{c.Evidence("state", w.State, "API")}}
	switch w.State {
	case "paused":
		h.Verdict, h.Condition = sandbox.False, providers.ConditionResumable
	case "running":
		if answer.err == nil {
			answer = c.probeHost(ctx, id)
		}
		if answer.portClosed() && (waited || wirekit.Sleep(ctx, probePause) == nil) { // envd may be restarting
			answer = c.probeHost(ctx, id)
		}
		if answer.err != nil && ctx.Err() != nil {
			return providers.Health{}, answer.err
		}
		h.Evidence = append(h.Evidence, c.Evidence("host", answer.said, "sandbox host"))
		h.Verdict, h.Condition = answer.health()
	}
	return h, nil
}

// probePause is the time between two probes of a closed port.
const probePause = 2 * time.Second

// health is what an answer of the host means for a sandbox in state running (E2B API, edge
// answers).
func (h hostAnswer) health() (sandbox.Verdict, providers.Condition) {
	switch {
	case h.err == nil:
		return sandbox.True, providers.ConditionHealthy
	case h.isMissing(): // the API has a record and the edge has not: one of them is wrong
		return sandbox.Unknown, providers.ConditionUnknown
	case h.portClosed():
		return sandbox.False, providers.ConditionBroken
	case h.status == http.StatusConflict:
		return sandbox.Unknown, providers.ConditionWait
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// Exit is the exit of the program that create started, from its file inside.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	w, err := c.insideRecord(ctx, id, c.detail)
	switch {
	case err != nil:
		return nil, err
	case w.Metadata[sandbox.LabelRun] == "":
		return nil, fault.Placed(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), c.Profile, "exit "+id)
	case w.State != "running":
		return nil, c.Fault(fault.KindUnavailable, "exit "+id, "it is %s, and a probe would wake it", w.State).Inside()
	}
	exit, err := guest.Exit(ctx, c.shellOf(id, nil), w.Metadata[sandbox.LabelRun])
	return exit, fault.Placed(err, c.Profile, "exit "+id)
}

// Check checks the profile: the API, the key and the clocks.
func (c *Client) Check(ctx context.Context) []providers.Check {
	running, paused := 0, 0
	for s, err := range c.List(ctx, providers.Query{}) {
		if err != nil {
			return []providers.Check{wirekit.FailedCheck("api", err)}
		}
		if s.State == sandbox.StatePaused {
			paused++
		} else {
			running++
		}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d running, %d paused", running, paused)}}
	return append(found, providers.CheckClock(c.API))
}

// sampleWindow is the greatest age of a sample that shows the present: three of the intervals in which they come.
const sampleWindow = 3 * 5 * time.Second

// Usage is the newest sample of the metrics API; without a sample or such an API what envd
// measures now; without that what a script inside measures. Source says which one it is. A
// paused sandbox is not asked inside.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	w, err := c.lookDetail(ctx, id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	samples, err := c.readSamples(ctx, id, c.Now().Add(-sampleWindow))
	switch {
	case err != nil && !routeMissing(err):
		return sandbox.Usage{}, err
	case len(samples) > 0:
		return c.sampleUsage(samples[len(samples)-1]), nil
	case w.State != "running":
		return sandbox.Usage{At: c.Now(), Source: "metrics API (no sample)", MemoryLimitBytes: mebibytes(w.MemoryMB)}, nil
	}
	u, err := c.envdUsage(ctx, id, w.EnvdAccessToken)
	if err == nil || fault.SettlesLook(err) {
		return u, err
	}
	u, err = guest.Usage(ctx, c.turns.Measurement(id, c.untimedShell(id, nil)), c.Now())
	return u, fault.Placed(err, c.Profile, "usage "+id)
}

// sampleUsage converts a sample in bytes, or in MiB as Novita has it.
func (c *Client) sampleUsage(m wireMetric) sandbox.Usage {
	u := sandbox.Usage{
		At: m.at(), Source: "metrics API", CPUPercent: percentOfCore(m.CPUUsedPct, m.CPUCount),
		MemoryBytes: providers.ValidBytes(m.MemUsed), MemoryLimitBytes: providers.ValidBytes(m.MemTotal),
	}
	if u.MemoryBytes == nil && m.MemUsedMiB != nil && *m.MemUsedMiB < 1<<30 {
		u.MemoryBytes = providers.ValidBytes(new(*m.MemUsedMiB * sandbox.MiB))
	}
	if u.MemoryLimitBytes == nil {
		u.MemoryLimitBytes = mebibytes(m.MemTotalMiB)
	}
	return u
}

// envdUsage asks envd, which needs no metrics store.
func (c *Client) envdUsage(ctx context.Context, id, token string) (sandbox.Usage, error) {
	var m wireEnvdMetric
	if _, err := c.hosts.JSON(ctx, c.toHost(httpx.Request{Op: "usage " + id, Path: "/metrics"}, id, token), &m); err != nil {
		return sandbox.Usage{}, err
	}
	if m.MemTotal == nil && m.CPUUsedPct == nil {
		return sandbox.Usage{}, c.Fault(fault.KindUnavailable, "usage "+id, "envd reports no figures").Inside()
	}
	return sandbox.Usage{
		At: c.Now(), Source: "envd", CPUPercent: percentOfCore(m.CPUUsedPct, m.CPUCount),
		MemoryBytes: providers.ValidBytes(m.MemUsed), MemoryLimitBytes: providers.ValidBytes(m.MemTotal),
	}, nil
}

// UsageBatch is the most ids of one request (E2B API, sandbox_ids).
func (c *Client) UsageBatch() int { return 100 }

// UsageOfMany reads the newest samples of many sandboxes, those that are not older than
// sampleWindow. Domains with ids of two parts have no such route.
func (c *Client) UsageOfMany(ctx context.Context, ids []string) (map[string]sandbox.Usage, error) {
	if c.legacy {
		return nil, c.Fault(fault.KindUnsupported, "usage of several sandboxes", "this domain returns the metrics of one sandbox at a time")
	}
	var got wireManyMetrics
	_, err := c.API.JSON(
		ctx, httpx.Request{Op: "usage of several sandboxes", Path: "/sandboxes/metrics", Query: url.Values{"sandbox_ids": {strings.Join(ids, ",")}}}, &got,
	)
	switch {
	case routeMissing(err):
		return nil, c.Fault(fault.KindUnsupported, "usage of several sandboxes", "this API returns the metrics of one sandbox at a time")
	case err != nil:
		return nil, err
	}
	found := make(map[string]sandbox.Usage, len(got.Sandboxes))
	for id, m := range got.Sandboxes {
		if c.ServerNow().Sub(m.at()) <= sampleWindow && slices.Contains(ids, id) {
			found[id] = c.sampleUsage(m)
		}
	}
	return found, nil
}

// percentOfCore converts a share of the whole machine to percent of one core.
func percentOfCore(pct, cores *float64) *float64 {
	if pct == nil || cores == nil || *pct < 0 {
		return nil
	}
	return providers.ValidPercent(new(*pct * *cores))
}

// CapturesOutput is false: the API's log has the actions of envd and no output, so an agent
// that is one long command never appears in it (measured with envd 0.6.13). The files of a
// sandbox of sbx have the output of its program and not that of other clients' commands.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return false }

// UsageHistory reads the samples of the metrics API: one every 5 s, kept for about 7 days
// (E2B documentation, metrics). The first one comes 5 to 10 s after the start.
func (c *Client) UsageHistory(ctx context.Context, id string, since time.Time) ([]sandbox.Usage, error) {
	samples, err := c.readSamples(ctx, id, since)
	switch {
	case routeMissing(err):
		return nil, c.Fault(fault.KindUnsupported, "usage "+id, "this API keeps no samples")
	case err != nil:
		return nil, err
	}
	all := make([]sandbox.Usage, 0, len(samples))
	for _, m := range samples {
		all = append(all, c.sampleUsage(m))
	}
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
	} `json:"processes" odd:"error"`
}

// Processes lists the programs of all clients that envd has started and that have not ended.
// Their child processes are not listed: a background process may outlive its shell.
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	w, err := c.lookDetail(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case w.State != "running":
		return nil, c.Fault(fault.KindUnavailable, "processes "+id, "it is %s, and a probe would wake it", w.State).Inside()
	}
	var got wireProcesses
	r := c.toHost(
		httpx.Request{Op: "processes " + id, Method: http.MethodPost, Path: "/process.Process/List", JSON: struct{}{}, Again: true}, id, w.EnvdAccessToken,
	)
	if _, err := c.hosts.JSON(ctx, r, &got); err != nil {
		return nil, err
	}
	all := make([]providers.Process, 0, len(got.Processes))
	for _, p := range got.Processes {
		if strings.HasPrefix(p.Tag, scriptMark) {
			continue
		}
		all = append(all, providers.Process{PID: p.PID, Args: append([]string{p.Config.Cmd}, p.Config.Args...)})
	}
	return all, nil
}

// readSamples reads the samples of the metrics API since then, the oldest first; legacy clouds take no range. What
// lies outside of it, or has no time, is left out, whatever the API answers. A look that has found none asks for none
// again.
func (c *Client) readSamples(ctx context.Context, id string, since time.Time) ([]wireMetric, error) {
	if c.metrics.missing() {
		return nil, errNoRoute
	}
	notes := httpx.LookNotes(ctx)
	if notes != nil {
		if kept, has := notes.Load(samplesNote(id)); has {
			if none, _ := kept.(noSamples); !since.Before(none.since) {
				return nil, none.err
			}
		}
	}
	var samples httpx.List[wireMetric]
	query := url.Values{}
	if !c.legacy {
		query.Set("start", strconv.FormatInt(since.Unix(), 10))
		query.Set("end", strconv.FormatInt(c.Now().Unix(), 10))
	}
	_, err := c.API.JSON(ctx, httpx.Request{Op: "usage " + id, Path: httpx.Path("sandboxes", id, "metrics"), Query: query}, &samples)
	c.metrics.note(id, err)
	rows, odd := samples.Rows()
	if notes != nil && (routeMissing(err) || err == nil && odd == nil && len(rows) == 0) {
		notes.Store(samplesNote(id), noSamples{since, err})
	}
	if err != nil {
		return nil, err
	}
	ahead, _ := c.API.Skew()
	from, to := since.Add(ahead).Truncate(time.Second), c.ServerNow().Add(sampleWindow)
	rows = slices.DeleteFunc(rows, func(m wireMetric) bool { return m.at().Before(from) || m.at().After(to) })
	slices.SortStableFunc(rows, func(a, b wireMetric) int { return a.at().Compare(b.at()) })
	return rows, fault.Placed(odd, c.Profile, "usage "+id)
}
