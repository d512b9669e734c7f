package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

// Roots is the input of Detect.
type Roots struct {
	// Proc is the proc file system: "/proc".
	Proc string
	// Owner separates several installations on one machine, for example by state directory:
	// Orphans never lists the groups of another owner. Letters, digits, `_` and `-`; may be
	// empty.
	Owner string
}

// Host is what this machine's control groups offer to one process.
type Host struct {
	owner   string
	tree    tree
	rights  rights
	unified *hierarchy
	legacy  []hierarchy
}

// hierarchy is one tree of groups with the controllers that are bound to it.
type hierarchy struct {
	v2          bool
	controllers []string
	mount       string // its top directory here
	own         string // the process's own group; "" when it lies outside
}

// Possibility says whether one kind of enforcement works here, and if not, why not.
type Possibility struct {
	Enforcement sandbox.Enforcement
	OK          bool
	Reason      string // why not; empty when OK
}

// Detect reads which hierarchies the process pid (0 = the caller) sees. A system without
// control groups has none, which is no error.
func Detect(r Roots, pid int) (Host, error) {
	return detectHost(r, pid, disk{}, disk{})
}

func detectHost(r Roots, pid int, t tree, may rights) (Host, error) {
	h := Host{owner: r.Owner, tree: t, rights: may}
	if r.Owner != "" && !wellFormed(r.Owner) {
		return h, fmt.Errorf("%w: owner %q", ErrName, r.Owner)
	}
	self := path.Join(r.Proc, "self")
	if pid > 0 {
		self = path.Join(r.Proc, strconv.Itoa(pid))
	}
	mounts, err := t.readFile(path.Join(self, "mountinfo"))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("detect control groups: %w", err)
	}
	groups, err := t.readFile(path.Join(self, "cgroup"))
	if err != nil {
		return h, fmt.Errorf("detect control groups: %w", err)
	}
	h.addHierarchies(parseMounts(mounts), parseMembership(groups))
	return h, nil
}

// addHierarchies sorts mounts into hierarchies. Where a hierarchy is mounted twice, the
// mount that shows the process's own group is preferred, then the first.
func (h *Host) addHierarchies(mounts []mount, groups map[string]string) {
	slices.SortStableFunc(mounts, func(a, b mount) int {
		return boolOrder(a.showsOwnGroup(groups), b.showsOwnGroup(groups))
	})
	bound := map[string]bool{}
	for _, m := range mounts {
		if m.v2 {
			if h.unified == nil {
				h.unified = &hierarchy{v2: true, controllers: h.readWords(path.Join(m.point, "cgroup.controllers")), mount: m.point, own: m.visibleDir(groups[""])}
			}
			continue
		}
		use := slices.DeleteFunc(usableControllers(m.super), func(c string) bool { return bound[c] })
		if len(use) == 0 {
			continue
		}
		for _, c := range use {
			bound[c] = true
		}
		h.legacy = append(h.legacy, hierarchy{controllers: use, mount: m.point, own: m.visibleDir(groups[use[0]])})
	}
}

func (m mount) showsOwnGroup(groups map[string]string) bool {
	if m.v2 {
		return m.visibleDir(groups[""]) != ""
	}
	use := usableControllers(m.super)
	return len(use) > 0 && m.visibleDir(groups[use[0]]) != ""
}

// usableControllers selects the v1 controllers that sandboxes need from mount options.
func usableControllers(options []string) []string {
	var use []string
	for _, c := range []string{"memory", "pids", "cpu", "cpuacct", "freezer"} {
		if slices.Contains(options, c) {
			use = append(use, c)
		}
	}
	return use
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// readWords reads a file of words; an unreadable file has none.
func (h *Host) readWords(file string) []string {
	text, err := h.tree.readFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(text)
}

// Possible lists, best first, which enforcement a sandbox with limits would get and why the
// others are unavailable. It changes nothing.
func (h Host) Possible() []Possibility {
	var list []Possibility
	for _, p := range h.listPlans(Limits{MemoryBytes: 1, PIDs: 1, CPU: 1}) {
		one := Possibility{Enforcement: p.enforcement, OK: p.err == nil}
		if p.err != nil {
			one.Reason = p.err.Error()
		}
		list = append(list, one)
	}
	return list
}
