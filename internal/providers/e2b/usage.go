package e2b

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// window is how far back a sample may lie: they come every 5 s.
const window = time.Minute

// Usage gives the newest sample of the metrics API; where there is none yet, or
// no such API, what envd measures now; where envd cannot either, what a command
// inside finds. Source says which. Of a paused sandbox nothing is asked inside.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	w, err := c.detail(ctx, id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	samples, err := c.samples(ctx, id, c.now().Add(-window))
	switch {
	case err != nil && !absent(err):
		return sandbox.Usage{}, err
	case len(samples) > 0:
		return c.sampled(samples[len(samples)-1]), nil
	case w.State != "running":
		return sandbox.Usage{At: c.now(), Source: "metrics API (no sample)", MemoryLimitBytes: mebibytes(w.MemoryMB)}, nil
	}
	if u, err := c.measured(ctx, id, w.EnvdAccessToken); err == nil {
		return u, nil
	}
	u, err := guest.Usage(ctx, c.shellOf(id), c.now())
	return u, fault.Placed(err, c.name, "usage "+id)
}

// sampled reads a sample of either shape: bytes, or Novita's MiB.
func (c *Client) sampled(m wireMetric) sandbox.Usage {
	u := sandbox.Usage{
		At: c.now(), Source: "metrics API", CPUPercent: ofOneCore(m.CPUUsedPct, m.CPUCount),
		MemoryBytes: providers.Bytes(m.MemUsed), MemoryLimitBytes: providers.Bytes(m.MemTotal),
	}
	if m.TimestampUnix > 0 {
		u.At = time.Unix(m.TimestampUnix, 0).UTC()
	}
	if u.MemoryBytes == nil && m.MemUsedMiB != nil && *m.MemUsedMiB < 1<<30 {
		u.MemoryBytes = providers.Bytes(new(*m.MemUsedMiB * sandbox.MiB))
	}
	if u.MemoryLimitBytes == nil {
		u.MemoryLimitBytes = mebibytes(m.MemTotalMiB)
	}
	return u
}

// measured asks envd, which needs no metrics store.
func (c *Client) measured(ctx context.Context, id, token string) (sandbox.Usage, error) {
	var m wireEnvdMetric
	if _, err := c.hosts.JSON(ctx, c.toHost(httpx.Request{Op: "usage " + id, Path: "/metrics"}, id, token), &m); err != nil {
		return sandbox.Usage{}, err
	}
	if m.MemTotal == nil && m.CPUUsedPct == nil {
		return sandbox.Usage{}, fault.New(fault.KindUnavailable, "envd gives no figures").At(c.name, "usage "+id).Inside()
	}
	return sandbox.Usage{
		At: c.now(), Source: "envd", CPUPercent: ofOneCore(m.CPUUsedPct, m.CPUCount),
		MemoryBytes: providers.Bytes(m.MemUsed), MemoryLimitBytes: providers.Bytes(m.MemTotal),
	}, nil
}

// ofOneCore turns a share of the whole machine into percent of one core.
func ofOneCore(pct, cores *float64) *float64 {
	if pct == nil || cores == nil || *pct < 0 {
		return nil
	}
	return providers.Percent(new(*pct * *cores))
}
