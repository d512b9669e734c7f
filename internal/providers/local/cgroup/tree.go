package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// tree is the file operations that groups need: of the real file system, or of a model of the
// kernel in tests.
type tree interface {
	makeGroupDir(dir string) error
	removeGroupDir(dir string) error
	readText(file string) (string, error)
	writeFile(file, value string) error
	inodeOfDir(dir string) (uint64, error)
	childDirs(dir string) ([]string, error) // the names of its directories
}

// rights checks what this process may do, without doing it.
type rights interface {
	checkWritable(file string) error
	isDelegated(dir string) bool // the directory was given to this user to manage
}

// disk is the cgroup file system of the running kernel.
type disk struct{}

// makeGroupDir makes a group that other users may list, like the kernel's own groups.
func (disk) makeGroupDir(dir string) error {
	return os.Mkdir(dir, 0o755) //nolint:gosec // counters of a group are no secret, and ls of another user shows them
}

// removeGroupDir is not os.Remove, which would unlink a file of that name.
func (disk) removeGroupDir(dir string) error { return syscall.Rmdir(dir) }

func (disk) readText(file string) (string, error) {
	text, err := os.ReadFile(file)
	return string(text), err
}

// writeFile sends the value in one call: the kernel parses a cgroup file per write. It never
// creates a file.
func (disk) writeFile(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (disk) inodeOfDir(dir string) (uint64, error) { return inodeOf(dir) }

func (disk) childDirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// noSuchGroup reports whether an error means that the group does not exist (anymore): the path is
// missing, or the file was open when the group was removed.
func noSuchGroup(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

func fileExists(t tree, file string) bool {
	_, err := t.inodeOfDir(file)
	return err == nil
}

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
