package cgroup

import (
	"path"
	"strconv"
	"strings"
)

// mount is one line of /proc/PID/mountinfo that shows a cgroup hierarchy.
type mount struct {
	root  string   // the group that is visible at point
	point string   // the directory
	v2    bool     // cgroup2
	super []string // options of the file system; a v1 hierarchy lists its controllers here
}

// parseMounts picks the cgroup mounts out of a mountinfo text. Lines that are
// not understood are passed over: they belong to other file systems.
func parseMounts(text string) []mount {
	var found []mount
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		if !ok {
			continue
		}
		where, what := strings.Fields(left), strings.Fields(right)
		if len(where) < 6 || len(what) < 1 || (what[0] != "cgroup" && what[0] != "cgroup2") {
			continue
		}
		m := mount{root: unescape(where[3]), point: unescape(where[4]), v2: what[0] == "cgroup2"}
		if !path.IsAbs(m.point) || !path.IsAbs(m.root) {
			continue
		}
		if len(what) > 2 {
			m.super = strings.Split(what[len(what)-1], ",")
		}
		found = append(found, m)
	}
	return found
}

// unescape undoes the octal escapes (\040) that the kernel writes for blanks,
// tabs, newlines and backslashes.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// parseMembership reads /proc/PID/cgroup: which group the process is in, by
// controller; the unified hierarchy has the key "".
func parseMembership(text string) map[string]string {
	groups := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || !path.IsAbs(parts[2]) {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			groups[c] = parts[2]
		}
	}
	return groups
}

// place turns a group of the hierarchy into the directory that shows it; ""
// when the group lies outside of what is mounted.
func (m mount) place(group string) string {
	if group == "" || strings.Contains(group+"/", "/../") {
		return ""
	}
	if m.root == "/" {
		return path.Join(m.point, group)
	}
	rest, ok := strings.CutPrefix(group, m.root)
	if !ok || (rest != "" && rest[0] != '/') {
		return ""
	}
	return path.Join(m.point, rest)
}

// keyed reads one `name value` line of a flat keyed file (cpu.stat,
// memory.events, memory.oom_control).
func keyed(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || key != name {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// v1NoLimit is below what a v1 hierarchy shows for "no limit", and above any limit.
const v1NoLimit = 1 << 62

// number reads a file that holds one figure. "max" and the ceiling that a v1
// hierarchy shows for "no limit" are not figures.
func number(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n < v1NoLimit
}

// parsePIDs reads cgroup.procs or tasks. A 0 stands for a process that this
// PID namespace cannot see, and is left out.
func parsePIDs(text string) []int {
	var pids []int
	for field := range strings.FieldsSeq(text) {
		if n, err := strconv.Atoi(field); err == nil && n > 0 {
			pids = append(pids, n)
		}
	}
	return pids
}
