package local

import (
	"context"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// clockTicks is the kernel's USER_HZ, in which /proc counts CPU time.
const clockTicks = 100

// Usage reads one sample: from the cgroup where there is one, else by adding
// up the process tree. Operations are read and write calls of the processes
// that live now. For an ended sandbox it gives what the record kept.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	r, err := c.load(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	if r.State.Ended() {
		return lastUsage(r), nil
	}
	u := sandbox.Usage{At: c.now().UTC()}
	if r.Limits.MemoryBytes > 0 {
		u.MemoryLimitBytes = &r.Limits.MemoryBytes
	}
	sources := make([]string, 0, 2)
	tree, err := c.tree(r)
	if err != nil {
		return u, fault.New(fault.KindUnavailable, "%w", err).At(c.name, "usage "+id)
	}
	if group, err := cgroup.ReopenRecorded(r.Cgroup); err == nil && len(group.Paths()) > 0 {
		defer group.Close() // read only
		fromGroup(&u, group.Stats())
		sources = append(sources, string(group.Enforcement()))
	} else {
		fromTree(&u, tree)
	}
	countOperations(&u, tree)
	findBusiest(&u, tree)
	if r.Program.PID > 0 && !r.ProgramEnded() { // its number may be another's by then
		u.Waiting = identity.Host().Waiting(r.Program.PID)
	}
	u.Source = strings.Join(append(sources, "/proc"), " + ")
	return u, nil
}

func fromGroup(u *sandbox.Usage, s cgroup.Stats) {
	u.CPUSeconds, u.MemoryBytes, u.MemoryPeakBytes = s.CPUSeconds, s.MemoryBytes, s.PeakBytes
	u.PIDs, u.OOMKills = s.PIDs, s.OOMKills
	if s.LimitBytes != nil {
		u.MemoryLimitBytes = s.LimitBytes
	}
}

// tree lists the sandbox's processes without its stub, at the cost of the sandbox:
// looking at each of many must not read the whole machine each time.
func (c *Client) tree(r record.Record) ([]identity.Stat, error) {
	if r.Stub.PID <= 0 {
		return nil, nil
	}
	return identity.Host().Offspring(r.Stub.PID)
}

func fromTree(u *sandbox.Usage, tree []identity.Stat) {
	var resident, ticks, pids int64
	for _, p := range tree {
		if p.Dead() {
			continue
		}
		resident += p.RSSBytes
		ticks += int64(p.UTimeSTimeTicks)
		pids++
	}
	seconds := float64(ticks) / clockTicks
	u.MemoryBytes, u.CPUSeconds, u.PIDs = &resident, &seconds, &pids
}

// countOperations leaves the count unknown when one process hides its own.
func countOperations(u *sandbox.Usage, tree []identity.Stat) {
	var total int64
	for _, p := range tree {
		if p.Dead() {
			continue
		}
		n, known := identity.Host().IOOperations(p.PID)
		if !known {
			return
		}
		total += n
	}
	u.Operations = &total
}

// findBusiest looks for the thread that wants the processor most; unknown when
// one process hides it.
func findBusiest(u *sandbox.Usage, tree []identity.Stat) {
	var most float64
	for _, p := range tree {
		if p.Dead() {
			continue
		}
		n, known := identity.Host().Busiest(p.PID)
		if !known {
			return
		}
		most = max(most, float64(n)/1e9)
	}
	u.BusiestSeconds = &most
}

func lastUsage(r record.Record) sandbox.Usage {
	u := sandbox.Usage{At: r.EndedAt, Source: "record"}
	if e := r.Exit; e != nil {
		u.MemoryPeakBytes, u.CPUSeconds, u.OOMKills = e.PeakBytes, e.CPUSeconds, e.OOMKills
	}
	if e := r.End; e != nil {
		u.MemoryPeakBytes, u.CPUSeconds, u.OOMKills = e.PeakBytes, e.CPUSeconds, e.OOMKills
	}
	if r.Limits.MemoryBytes > 0 {
		u.MemoryLimitBytes = &r.Limits.MemoryBytes
	}
	return u
}
