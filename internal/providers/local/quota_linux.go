package local

import (
	"context"
	"os"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.QuotaReader = (*Client)(nil)

// tellsQuota says that this system tells how much of its memory is used.
const tellsQuota = true

// Quota is what this machine has for all sandboxes together and for everything else
// on it: its memory, as the kernel counts what could still be had.
func (c *Client) Quota(ctx context.Context) ([]providers.Quota, error) {
	if err := ctx.Err(); err != nil {
		return nil, c.trouble("quota", err)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, c.trouble("quota", err)
	}
	total, available, ok := memoryOf(string(text))
	if !ok {
		return nil, fault.New(fault.KindUnavailable, "/proc/meminfo does not say how much memory there is").At(c.name, "quota")
	}
	return []providers.Quota{{Name: "memory", Scope: "this machine", Unit: "MiB", Used: new(mebibytes(total - available)), Limit: new(mebibytes(total))}}, nil
}

func mebibytes(bytes int64) float64 { return float64(bytes) / sandbox.MiB }
