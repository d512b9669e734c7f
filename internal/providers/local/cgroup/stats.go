package cgroup

import (
	"path"
	"strings"
)

// Stats is one sample of a group. Nil means that this host does not say, or
// that the group is gone.
type Stats struct {
	MemoryBytes *int64   // working set: usage without page cache that can be dropped at once
	PeakBytes   *int64   // the highest usage so far, cache included; v1 ends one page above its limit
	LimitBytes  *int64   // nil also when there is no limit
	CPUSeconds  *float64 // used so far by all processes, ended ones included
	PIDs        *int64   // processes, not threads
	OOMKills    *int64   // processes killed for want of memory so far
	OOMs        *int64   // how often the limit was hit without a way out; v2 only
	Source      string   // "cgroup2", "cgroup1", "hybrid", "systemd-scope"
}

// Stats reads the counters. They stay readable after the last process has
// ended, until Remove.
func (g *Group) Stats() Stats {
	s := Stats{Source: string(g.state.Enforcement), CPUSeconds: g.cpuSeconds()}
	if pids, err := g.PIDs(); err == nil && len(g.state.Dirs) > 0 {
		n := int64(len(pids))
		s.PIDs = &n
	}
	d, ok := g.with("memory")
	if !ok {
		return s
	}
	if d.V2 {
		g.memory2(d, &s)
	} else {
		g.memory1(d, &s)
	}
	return s
}

// memory2 reads cgroup v2. memory.events.local counts this group alone;
// memory.events counts groups below it too, so it is asked when the former is
// missing (before 5.2) or has nothing to tell.
func (g *Group) memory2(d Dir, s *Stats) {
	s.MemoryBytes = g.workingSet(d, "memory.current", "inactive_file")
	s.PeakBytes = g.figure(d, "memory.peak")
	s.LimitBytes = g.figure(d, "memory.max")
	s.OOMKills = g.event(d, "oom_kill")
	s.OOMs = g.event(d, "oom")
}

func (g *Group) event(d Dir, name string) *int64 {
	own := g.key(d, "memory.events.local", name)
	if own == nil || *own == 0 {
		if all := g.key(d, "memory.events", name); all != nil {
			return all
		}
	}
	return own
}

// memory1 reads cgroup v1. failcnt is not used: it stays 0 through an OOM.
func (g *Group) memory1(d Dir, s *Stats) {
	s.MemoryBytes = g.workingSet(d, "memory.usage_in_bytes", "total_inactive_file")
	s.PeakBytes = g.figure(d, "memory.max_usage_in_bytes")
	s.LimitBytes = g.figure(d, "memory.limit_in_bytes")
	s.OOMKills = g.key(d, "memory.oom_control", "oom_kill")
}

func (g *Group) workingSet(d Dir, usage, cache string) *int64 {
	n := g.figure(d, usage)
	if n == nil {
		return nil
	}
	if c := g.key(d, "memory.stat", cache); c != nil {
		*n = max(0, *n-*c)
	}
	return n
}

// cpuSeconds prefers v2, which counts from the program's birth.
func (g *Group) cpuSeconds() *float64 {
	if d, ok := g.unified(); ok {
		if n := g.key(d, "cpu.stat", "usage_usec"); n != nil {
			seconds := float64(*n) / 1e6
			return &seconds
		}
	}
	if d, ok := g.with("cpuacct"); ok {
		if n := g.figure(d, "cpuacct.usage"); n != nil {
			seconds := float64(*n) / 1e9
			return &seconds
		}
	}
	return nil
}

func (g *Group) figure(d Dir, name string) *int64 {
	text, err := g.file(d, name)
	if err != nil {
		return nil
	}
	if n, ok := number(text); ok {
		return &n
	}
	return nil
}

func (g *Group) key(d Dir, name, key string) *int64 {
	text, err := g.file(d, name)
	if err != nil {
		return nil
	}
	if n, ok := keyed(text, key); ok {
		return &n
	}
	return nil
}

// Events names the file of the kernel counter that proves an OOM, for the
// evidence of a report; "" when the group has none.
func (g *Group) Events() string {
	d, ok := g.with("memory")
	switch {
	case !ok:
		return ""
	case d.V2 && exists(g.tree, path.Join(d.Path, "memory.events.local")):
		return path.Join(d.Path, "memory.events.local")
	case d.V2:
		return path.Join(d.Path, "memory.events")
	}
	return path.Join(d.Path, "memory.oom_control")
}

// ownName splits a directory's name into owner and id.
func ownName(name string) (owner, id string) {
	owner, id, ok := strings.Cut(name, ".")
	if !ok {
		return "", name
	}
	return owner, id
}
