package local

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

var _ providers.QuotaReader = (*Client)(nil)

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
	total, available, ok := memoryOf(text)
	if !ok {
		return nil, fault.New(fault.KindUnavailable, "/proc/meminfo does not say how much memory there is").At(c.name, "quota")
	}
	return []providers.Quota{{Name: "memory", Scope: "this machine", Unit: "MiB", Used: new(total - available), Limit: &total}}, nil
}

// memoryOf reads MemTotal and MemAvailable, in MiB.
func memoryOf(text []byte) (total, available float64, ok bool) {
	found := 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		kib, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			continue
		}
		switch name {
		case "MemTotal":
			total, found = kib/1024, found+1
		case "MemAvailable":
			available, found = kib/1024, found+1
		}
	}
	return total, available, found == 2 && total > 0 && available <= total
}
