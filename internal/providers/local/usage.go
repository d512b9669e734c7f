package local

import (
	"context"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// clockTicks is the kernel's USER_HZ, in which /proc counts CPU time.
const clockTicks = 100

// Usage reads one sample: from the cgroup where there is one, else as the sum over the
// process tree. Operations are read and write calls of the processes alive now. Of an ended
// sandbox it returns what the record has.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	r, err := c.loadRecord(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	if r.State.Ended() {
		return lastUsage(r), nil
	}
	u := sandbox.Usage{At: c.now().UTC(), MemoryLimitBytes: ifPositive(r.Limits.MemoryBytes)}
	sources := make([]string, 0, 2)
	tree, err := c.listTree(r)
	if err != nil {
		return u, fault.New(fault.KindUnavailable, "%w", err).At(c.name, "usage "+id)
	}
	if group, err := cgroup.ReopenRecorded(r.Cgroup); err == nil && len(group.Paths()) > 0 {
		defer group.Close() // read only
		addGroupUsage(&u, group.Stats())
		sources = append(sources, string(group.Enforcement()))
	} else {
		addTreeUsage(&u, tree)
	}
	u.Operations = combineFigures(tree, identity.Host().IOOperations, func(a, b int64) int64 { return a + b })
	if busiest := combineFigures(tree, identity.Host().Busiest, func(a, b int64) int64 { return max(a, b) }); busiest != nil {
		u.BusiestSeconds = new(float64(*busiest) / 1e9)
	}
	if r.Program.PID > 0 && !r.ProgramEnded() { // its PID may belong to another process by then
		u.Waiting = identity.Host().Waiting(r.Program.PID)
	}
	u.Source = strings.Join(append(sources, "/proc"), " + ")
	return u, nil
}

func addGroupUsage(u *sandbox.Usage, s cgroup.Stats) {
	u.CPUSeconds, u.MemoryBytes, u.MemoryPeakBytes = s.CPUSeconds, s.MemoryBytes, s.PeakBytes
	u.PIDs, u.OOMKills = s.PIDs, s.OOMKills
	if s.LimitBytes != nil {
		u.MemoryLimitBytes = s.LimitBytes
	}
}

// listTree lists the sandbox's living processes without its stub. It reads only this tree:
// with many sandboxes, reading the whole machine each time would be too slow.
func (c *Client) listTree(r record.Record) ([]identity.Stat, error) {
	if r.Stub.PID <= 0 {
		return nil, nil
	}
	all, err := identity.Host().Offspring(r.Stub.PID)
	return slices.DeleteFunc(all, identity.Stat.Dead), err
}

func addTreeUsage(u *sandbox.Usage, tree []identity.Stat) {
	var resident, ticks int64
	for _, p := range tree {
		resident += p.RSSBytes
		ticks += int64(p.UTimeSTimeTicks)
	}
	u.MemoryBytes, u.CPUSeconds, u.PIDs = &resident, new(float64(ticks)/clockTicks), new(int64(len(tree)))
}

// combineFigures combines one figure of all processes; nil when a process does not show it.
func combineFigures(tree []identity.Stat, read func(pid int) (int64, bool), combine func(a, b int64) int64) *int64 {
	var result int64
	for _, p := range tree {
		n, known := read(p.PID)
		if !known {
			return nil
		}
		result = combine(result, n)
	}
	return &result
}

func lastUsage(r record.Record) sandbox.Usage {
	u := sandbox.Usage{At: r.EndedAt, Source: "record", MemoryLimitBytes: ifPositive(r.Limits.MemoryBytes)}
	if e := r.Exit; e != nil {
		u.MemoryPeakBytes, u.CPUSeconds, u.OOMKills = e.PeakBytes, e.CPUSeconds, e.OOMKills
	}
	if e := r.End; e != nil {
		u.MemoryPeakBytes, u.CPUSeconds, u.OOMKills = e.PeakBytes, e.CPUSeconds, e.OOMKills
	}
	return u
}
