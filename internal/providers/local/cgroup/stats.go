package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Stats is one sample of a group. Nil means that this host does not report it, or that the
// group no longer exists.
type Stats struct {
	MemoryBytes *int64   // working set: usage without the page cache that can be dropped at once
	PeakBytes   *int64   // the highest usage so far, cache included; v1 ends one page above its limit
	LimitBytes  *int64   // nil also when there is no limit
	CPUSeconds  *float64 // used so far by all processes, ended ones included
	PIDs        *int64   // processes, not threads
	Tasks       *int64   // processes and threads, which the limit counts
	Refused     *int64   // how often the limit of processes has refused one more so far
	OOMKills    *int64   // processes killed for lack of memory so far
	Source      string   // "cgroup2", "cgroup1", "hybrid", "systemd-scope"
}

// Kills is what the kernel log says of kills for lack of memory.
type Kills struct {
	Line     string          // by which the kernel killed the process that was asked about; "" = none was seen
	Complete bool            // the log could be read and reaches back far enough: without a Line there was no such kill
	Last     time.Duration   // how long ago the last process of the group was killed; 0 = none was seen
	OwnLimit sandbox.Verdict // whether that was for the group's own limit; "" = the log does not say it
}

// Stats reads the counters. They are readable after the last process has ended, until Remove.
func (g *Group) Stats() Stats {
	s := Stats{Source: string(g.state.Enforcement), CPUSeconds: g.cpuSeconds()}
	if pids, err := g.PIDs(); err == nil && len(g.state.Dirs) > 0 {
		n := int64(len(pids))
		s.PIDs = &n
	}
	if d, ok := g.dirWith("pids"); ok {
		s.Tasks = g.readFigure(d, "pids.current", "")
		// pids.events includes groups below since 6.12, and .local is this group alone.
		s.Refused = cmp.Or(g.readFigure(d, "pids.events.local", "max"), g.readFigure(d, "pids.events", "max"))
	}
	d, ok := g.dirWith("memory")
	if !ok {
		return s
	}
	s.OOMKills = g.OOMKills()
	if d.V2 {
		s.MemoryBytes = g.workingSet(d, "memory.current", "inactive_file")
		s.PeakBytes = g.readFigure(d, "memory.peak", "")
		s.LimitBytes = g.readFigure(d, "memory.max", "")
		return s
	}
	s.MemoryBytes = g.workingSet(d, "memory.usage_in_bytes", "total_inactive_file")
	s.PeakBytes = g.readFigure(d, "memory.max_usage_in_bytes", "")
	s.LimitBytes = g.readFigure(d, "memory.limit_in_bytes", "")
	return s
}

// OOMKills is Stats().OOMKills alone.
func (g *Group) OOMKills() *int64 {
	d, ok := g.dirWith("memory")
	switch {
	case !ok:
		return nil
	case d.V2:
		return g.oomKills(d)
	}
	return g.readFigure(d, "memory.oom_control", "oom_kill") // failcnt stays 0 through an OOM
}

// oomKills reads the counter of cgroup v2. memory.events.local counts this group alone;
// memory.events includes groups below it, so it is used when the former is missing (before
// 5.2) or 0.
func (g *Group) oomKills(d Dir) *int64 {
	own := g.readFigure(d, "memory.events.local", "oom_kill")
	if own == nil || *own == 0 {
		return cmp.Or(g.readFigure(d, "memory.events", "oom_kill"), own)
	}
	return own
}

// workingSet is nil where the cache is not known: all of the usage may be cache.
func (g *Group) workingSet(d Dir, usage, cache string) *int64 {
	n, c := g.readFigure(d, usage, ""), g.readFigure(d, "memory.stat", cache)
	if n == nil || c == nil {
		return nil
	}
	return new(max(0, *n-*c))
}

// cpuSeconds prefers v2, which counts from the start of the program.
func (g *Group) cpuSeconds() *float64 {
	if d, ok := g.unifiedDir(); ok {
		if n := g.readFigure(d, "cpu.stat", "usage_usec"); n != nil {
			seconds := float64(*n) / 1e6
			return &seconds
		}
	}
	if d, ok := g.dirWith("cpuacct"); ok {
		if n := g.readFigure(d, "cpuacct.usage", ""); n != nil {
			seconds := float64(*n) / 1e9
			return &seconds
		}
	}
	return nil
}

// readFigure reads the file's only figure or, with a key, one line of a flat keyed file.
func (g *Group) readFigure(d Dir, file, key string) *int64 {
	text, err := g.tree.readText(path.Join(d.Path, file))
	if err != nil {
		return nil
	}
	n, ok := parseFigure(text)
	if key != "" {
		n, ok = parseKeyed(text, key)
	}
	if !ok {
		return nil
	}
	return &n
}

func splitName(name string) (owner, id string) {
	owner, id, ok := strings.Cut(name, ".")
	if !ok {
		return "", name
	}
	return owner, id
}

// Ceiling is a memory limit that applies to more than one sandbox: of a group above those of
// new sandboxes, such as the container that sbx runs in.
type Ceiling struct {
	Group      string // the directory
	LimitBytes int64
	// FreeBytes is what may still be used: file cache counts as free, as in MemAvailable,
	// since the kernel drops it under pressure. Never negative.
	FreeBytes int64
}

// Ceilings lists the limits above a new sandbox, from its group's parent to the top of the
// visible hierarchy. The parent is the one that Create would use; where it can make no
// group, the process's own. The error lists what could not be read, beside the results.
func (h Host) Ceilings() ([]Ceiling, error) {
	hi, dir := h.parentGroup()
	if hi == nil || dir == "" {
		return nil, nil
	}
	var found []Ceiling
	var failed []error
	for ; ; dir = path.Dir(dir) {
		c, limited, err := h.readCeiling(dir, hi.v2)
		failed = append(failed, err)
		if limited {
			found = append(found, c)
		}
		if dir == hi.mount || len(dir) <= len(hi.mount) {
			return found, errors.Join(failed...)
		}
	}
}

// parentGroup is the group below which a new sandbox takes its memory.
func (h Host) parentGroup() (*hierarchy, string) {
	for _, p := range h.listPlans(Limits{MemoryBytes: 1}) {
		if p.err != nil {
			continue
		}
		for _, s := range p.sites {
			if slices.Contains(s.use, "memory") {
				return &s.hierarchy, s.base
			}
		}
	}
	hi := h.legacyHierarchy("memory")
	if hi == nil {
		hi = h.unified // its groups have no memory files without the controller
	}
	if hi == nil {
		return nil, ""
	}
	return hi, hi.own
}

// readCeiling reads one group; false where it has no limit: a group without the memory
// controller lacks the files.
func (h Host) readCeiling(dir string, v2 bool) (Ceiling, bool, error) {
	files := [2]string{"memory.limit_in_bytes", "memory.usage_in_bytes"}
	keys := [2]string{"total_inactive_file", "total_active_file"}
	if v2 {
		files, keys = [2]string{"memory.max", "memory.current"}, [2]string{"inactive_file", "active_file"}
	}
	limit, err := h.readAmount(path.Join(dir, files[0]))
	if noSuchGroup(err) || (err == nil && limit >= v1NoLimit) {
		return Ceiling{}, false, nil
	}
	used, failed := h.readAmount(path.Join(dir, files[1]))
	if err = errors.Join(err, failed); err != nil {
		return Ceiling{}, false, err
	}
	if stat, err := h.tree.readText(path.Join(dir, "memory.stat")); err == nil {
		for _, key := range keys {
			cache, _ := parseKeyed(stat, key) // 0 where it is unknown
			used -= max(0, cache)
		}
	}
	return Ceiling{Group: dir, LimitBytes: limit, FreeBytes: max(0, limit-max(0, used))}, true, nil
}

// readAmount reads a file with one amount; "max" is an amount that is never reached.
func (h Host) readAmount(file string) (int64, error) {
	text, err := h.tree.readText(file)
	if err != nil {
		return 0, err
	}
	word := strings.TrimSpace(text)
	if word == "max" {
		return v1NoLimit, nil
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s has no amount: %.20q", file, word)
	}
	return n, nil
}
