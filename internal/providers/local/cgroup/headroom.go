package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Ceiling is a memory limit that holds for more than one sandbox: that of a group
// around those which new sandboxes get, such as the container that sbx runs in.
type Ceiling struct {
	Group      string // the directory
	LimitBytes int64
	// FreeBytes is what may still be used: cache of files counts as free, as in
	// MemAvailable, since the kernel drops it when it is pressed. Never negative.
	FreeBytes int64
}

// Ceilings lists the limits above a new sandbox, from its group's parent up as far
// as the hierarchy is seen. Which group that is follows from what Create would
// do; where it can make none, the process's own counts. The error names what could
// not be read and stands beside what could.
func (h Host) Ceilings() ([]Ceiling, error) {
	hi, dir := h.above()
	if hi == nil || dir == "" {
		return nil, nil
	}
	var found []Ceiling
	var failed []error
	for ; ; dir = path.Dir(dir) {
		c, limited, err := h.ceiling(dir, hi.v2)
		failed = append(failed, err)
		if limited {
			found = append(found, c)
		}
		if dir == hi.mount || len(dir) <= len(hi.mount) {
			return found, errors.Join(failed...)
		}
	}
}

// above is the group below which a new sandbox takes its memory.
func (h Host) above() (*hierarchy, string) {
	for _, p := range h.plans(Limits{MemoryBytes: 1}) {
		if p.err != nil {
			continue
		}
		for _, s := range p.sites {
			if slices.Contains(s.use, "memory") {
				return &s.hierarchy, s.base
			}
		}
	}
	hi := h.bound("memory")
	if hi == nil {
		hi = h.unified // without the controller its groups have no such files
	}
	if hi == nil {
		return nil, ""
	}
	return hi, hi.own
}

// ceiling reads one group; false where it has no limit: the files of a controller
// that it was not given are missing.
func (h Host) ceiling(dir string, v2 bool) (Ceiling, bool, error) {
	files := [2]string{"memory.limit_in_bytes", "memory.usage_in_bytes"}
	keys := [2]string{"total_inactive_file", "total_active_file"}
	if v2 {
		files, keys = [2]string{"memory.max", "memory.current"}, [2]string{"inactive_file", "active_file"}
	}
	limit, err := h.figure(path.Join(dir, files[0]))
	if gone(err) || (err == nil && limit >= v1NoLimit) {
		return Ceiling{}, false, nil
	}
	used, failed := h.figure(path.Join(dir, files[1]))
	if err = errors.Join(err, failed); err != nil {
		return Ceiling{}, false, err
	}
	if stat, err := h.tree.read(path.Join(dir, "memory.stat")); err == nil {
		for _, key := range keys {
			cache, _ := keyed(stat, key) // 0 where it is not told
			used -= max(0, cache)
		}
	}
	return Ceiling{Group: dir, LimitBytes: limit, FreeBytes: max(0, limit-max(0, used))}, true, nil
}

// figure reads a file that holds one amount; "max" is none that is ever reached.
func (h Host) figure(file string) (int64, error) {
	text, err := h.tree.read(file)
	if err != nil {
		return 0, err
	}
	word := strings.TrimSpace(text)
	if word == "max" {
		return v1NoLimit, nil
	}
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s holds no amount: %.20q", file, word)
	}
	return n, nil
}
