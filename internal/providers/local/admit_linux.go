package local

import (
	"context"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/sandbox"
)

var _ providers.Admitter = (*Client)(nil)

const (
	// reservedBytes is the memory that stays free for everything else, unless a tenth of all
	// memory is more.
	reservedBytes = 1 << 30
	// maxPressure is the percentage of the last 10 s spent waiting for memory from which
	// no further sandbox is admitted.
	maxPressure = 10
)

// Admit refuses while a sandbox of this size would leave less than 1 GiB or less than a
// tenth of this machine's memory, or of the limit of a control group around sbx (in a
// container), and while memory is under pressure. Of a small memory, half is reserved.
// Figures that this machine does not report, or not readably, refuse nothing: Check lists
// them.
func (c *Client) Admit(ctx context.Context, memoryBytes int64) error {
	if err := ctx.Err(); err != nil {
		return c.classifyError("admit", err)
	}
	switch {
	case memoryBytes < 0:
		return fault.Usage("a sandbox of %d bytes", memoryBytes).At(c.name, "admit").WithHint("0 is the profile's own default")
	case memoryBytes == 0:
		memoryBytes = c.defaults.memoryBytes
	}
	why, _ := readAdmission(c.cgroupRoots()).refusal(memoryBytes)
	if why == "" {
		return nil
	}
	return fault.New(fault.KindRefused, "%s", why).At(c.name, "admit").
		WithHint("wait, terminate sandboxes that nobody needs (%s), or request less memory", providers.OldestFirst(c.name))
}

// checkMemoryFits refuses a size that this machine can never have free.
func (c *Client) checkMemoryFits(memoryBytes int64) error {
	for _, r := range readAdmission(c.cgroupRoots()).pools {
		if most := r.total - r.reserved(); memoryBytes > most {
			return fault.Usage("%s is requested, and of %s %s a sandbox may use at most %s", formatSize(memoryBytes), r.owner, formatSize(r.total), formatSize(most)).
				At(c.name, "create").WithHint("request less with --memory")
		}
	}
	return nil
}

// checkAdmission reports to doctor whether a sandbox of the default size may start now, and
// which figures are unknown.
func (c *Client) checkAdmission() []providers.Check {
	return []providers.Check{c.checkMemory(readAdmission(c.cgroupRoots()))}
}

func (c *Client) checkMemory(a admission) providers.Check {
	check := providers.Check{
		Check: "memory for a sandbox", Verdict: sandbox.True, Message: "one of " + formatSize(c.defaults.memoryBytes) + " may start now", Info: true,
	}
	why, unknown := a.refusal(c.defaults.memoryBytes)
	switch {
	case why != "":
		check.Verdict, check.Message = sandbox.False, why
	case len(unknown) > 0:
		check.Verdict, check.Message = sandbox.Unknown, "one may start, but this is unknown: "+strings.Join(unknown, ", ")
	}
	return check
}

// memoryPool is memory that sandboxes share with each other and with other programs.
type memoryPool struct {
	owner       string // "this machine's"
	total, free int64  // bytes
}

// reserved is the part of a pool that no sandbox may use.
func (r memoryPool) reserved() int64 { return min(max(reservedBytes, r.total/10), r.total/2) }

func (r memoryPool) refusal(memoryBytes int64) string {
	if r.free-memoryBytes >= r.reserved() {
		return ""
	}
	return formatSize(r.free) + " of " + r.owner + " " + formatSize(r.total) + " are free, " +
		formatSize(r.reserved()) + " is reserved, " + formatSize(memoryBytes) + " is requested"
}

// admission is the state of this machine's memory at one moment.
type admission struct {
	pools    []memoryPool
	pressure float64 // percent; 0 also when it is unknown
	unknown  []string
}

// readAdmission reads the state. A kernel without pressure accounting has no pressure that
// could be unknown.
func readAdmission(roots cgroup.Roots) admission {
	var a admission
	text, err := os.ReadFile(path.Join(roots.Proc, "meminfo"))
	if total, available, ok := parseMeminfo(string(text)); err == nil && ok {
		a.pools = append(a.pools, memoryPool{"this machine's", total, available})
	} else {
		a.unknown = append(a.unknown, "the free memory")
	}
	if text, err := os.ReadFile(path.Join(roots.Proc, "pressure", "memory")); err == nil {
		var ok bool
		if a.pressure, ok = parsePressure(string(text)); !ok {
			a.unknown = append(a.unknown, "the memory pressure")
		}
	}
	var around []cgroup.Ceiling
	host, err := cgroup.Detect(roots, 0)
	if err == nil {
		around, err = host.Ceilings()
	}
	if err != nil {
		a.unknown = append(a.unknown, "the limits of control groups ("+strings.ReplaceAll(err.Error(), "\n", "; ")+")")
	}
	for _, c := range around {
		a.pools = append(a.pools, memoryPool{"the control group " + c.Group + "'s", c.LimitBytes, c.FreeBytes})
	}
	return a
}

// refusal is why a sandbox of this size may not start now, "" = it may, and which figures
// are unknown.
func (a admission) refusal(memoryBytes int64) (why string, unknown []string) {
	for _, r := range a.pools {
		if why := r.refusal(memoryBytes); why != "" {
			return why, a.unknown
		}
	}
	if a.pressure >= maxPressure {
		return "memory pressure is " + strconv.FormatFloat(a.pressure, 'f', -1, 64) + " %", a.unknown
	}
	return "", a.unknown
}

var _ providers.QuotaReader = (*Client)(nil)

// reportsQuota is true: this system reports how much of its memory is used.
const reportsQuota = true

// Quota is the memory of this machine, for all sandboxes and all other programs, by the
// kernel's estimate of what is available.
func (c *Client) Quota(ctx context.Context) ([]providers.Quota, error) {
	if err := ctx.Err(); err != nil {
		return nil, c.classifyError("quota", err)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nil, c.classifyError("quota", err)
	}
	total, available, ok := parseMeminfo(string(text))
	if !ok {
		return nil, fault.New(fault.KindUnavailable, "/proc/meminfo does not show how much memory there is").At(c.name, "quota")
	}
	return []providers.Quota{{Name: "memory", Scope: "this machine", Unit: "MiB", Used: new(toMiB(total - available)), Limit: new(toMiB(total))}}, nil
}

func toMiB(bytes int64) float64 { return float64(bytes) / sandbox.MiB }

// parseMeminfo reads MemTotal and MemAvailable of /proc/meminfo, in bytes.
func parseMeminfo(text string) (total, available int64, ok bool) {
	found := 0
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || kib < 0 || kib > math.MaxInt64/1024 {
			continue
		}
		switch name {
		case "MemTotal":
			total, found = kib*1024, found+1
		case "MemAvailable":
			available, found = kib*1024, found+1
		}
	}
	return total, available, found == 2 && total > 0 && available <= total
}

// parsePressure reads /proc/pressure/memory: the percentage of the last 10 s in which some
// process waited for memory.
func parsePressure(text string) (percent float64, ok bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "some" {
			continue
		}
		value, named := strings.CutPrefix(fields[1], "avg10=")
		percent, err := strconv.ParseFloat(value, 64)
		return percent, named && err == nil && percent >= 0 && percent <= 100 // NaN is neither
	}
	return 0, false
}

// formatSize writes "512 MiB" or "1.2 GiB", rounded down, so that free memory is never
// overstated.
func formatSize(bytes int64) string {
	const gib = 1024 * sandbox.MiB
	if bytes < gib {
		return strconv.FormatInt(bytes/sandbox.MiB, 10) + " MiB"
	}
	text := strconv.FormatInt(bytes/gib, 10)
	if tenths := bytes % gib * 10 / gib; tenths > 0 {
		text += "." + strconv.FormatInt(tenths, 10)
	}
	return text + " GiB"
}
