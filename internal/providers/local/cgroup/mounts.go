package cgroup

import (
	"path"
	"strconv"
	"strings"
)

// mount is one line of /proc/PID/mountinfo of a cgroup hierarchy.
type mount struct {
	root  string   // the group that is visible at point
	point string   // the directory
	v2    bool     // cgroup2
	super []string // options of the file system; a v1 hierarchy lists its controllers here
}

// parseMounts selects the cgroup mounts of a mountinfo text. Other lines are skipped: they
// belong to other file systems.
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
		m := mount{root: unescapeOctal(where[3]), point: unescapeOctal(where[4]), v2: what[0] == "cgroup2"}
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

// unescapeOctal decodes the octal escapes that the kernel writes for blanks, tabs, newlines,
// number signs and backslashes (show_mountinfo).
func unescapeOctal(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`).Replace(text)
}

// parseMembership reads /proc/PID/cgroup: the group of the process by controller; the unified
// hierarchy has the key "".
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

// visibleDir is the directory that shows a group of the hierarchy; "" when the group is
// outside of the mount.
func (m mount) visibleDir(group string) string {
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

// parseKeyed reads one `name value` line of a flat keyed file (cpu.stat, memory.events,
// memory.oom_control).
func parseKeyed(text, name string) (int64, bool) {
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

// v1NoLimit is below the value that a v1 hierarchy shows for "no limit", and above any limit.
const v1NoLimit = 1 << 62

// parseFigure reads a file with one figure. "max" and the value that a v1 hierarchy shows for
// "no limit" are not figures.
func parseFigure(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n, err == nil && n < v1NoLimit
}

// parsePIDs reads cgroup.procs or tasks. A 0 is a process that is invisible in this PID
// namespace, and is left out.
func parsePIDs(text string) []int {
	var pids []int
	for field := range strings.FieldsSeq(text) {
		if n, err := strconv.Atoi(field); err == nil && n > 0 {
			pids = append(pids, n)
		}
	}
	return pids
}
