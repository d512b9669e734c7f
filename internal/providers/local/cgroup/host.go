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

// Mode is how the control groups of a host are laid out.
type Mode string

// The layouts. Hybrid is v1 controllers beside a v2 tree.
const (
	ModeUnified Mode = "unified"
	ModeLegacy  Mode = "legacy"
	ModeHybrid  Mode = "hybrid"
	ModeNone    Mode = "none"
)

// Roots is what Detect looks at and on whose behalf.
type Roots struct {
	// Proc is the proc file system: "/proc".
	Proc string
	// Owner separates several sbx on one machine, say by state directory:
	// Orphans never shows the groups of another owner. Letters, digits, `_`
	// and `-`; may be empty.
	Owner string
}

// Host is what this machine's control groups allow, as seen by one process.
type Host struct {
	Mode    Mode
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

// Possibility says whether one kind of enforcement works here, and if not, why.
type Possibility struct {
	Enforcement sandbox.Enforcement
	OK          bool
	Reason      string // why not; empty when OK
}

// Detect reads which hierarchies the process pid (0 = the caller) sees. A
// system without control groups gives ModeNone and no error.
func Detect(r Roots, pid int) (Host, error) {
	return detect(r, pid, disk{}, disk{})
}

func detect(r Roots, pid int, t tree, may rights) (Host, error) {
	h := Host{Mode: ModeNone, owner: r.Owner, tree: t, rights: may}
	if r.Owner != "" && !wellFormed(r.Owner) {
		return h, fmt.Errorf("%w: owner %q", ErrName, r.Owner)
	}
	self := path.Join(r.Proc, "self")
	if pid > 0 {
		self = path.Join(r.Proc, strconv.Itoa(pid))
	}
	mounts, err := t.read(path.Join(self, "mountinfo"))
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("detect control groups: %w", err)
	}
	groups, err := t.read(path.Join(self, "cgroup"))
	if err != nil {
		return h, fmt.Errorf("detect control groups: %w", err)
	}
	h.find(parseMounts(mounts), parseMembership(groups))
	return h, nil
}

// find sorts mounts into hierarchies. Where one is mounted twice, the place
// that shows the process's own group wins, then the first.
func (h *Host) find(mounts []mount, groups map[string]string) {
	slices.SortStableFunc(mounts, func(a, b mount) int {
		return boolOrder(a.sees(groups), b.sees(groups))
	})
	bound := map[string]bool{}
	for _, m := range mounts {
		if m.v2 {
			if h.unified == nil {
				h.unified = &hierarchy{v2: true, controllers: h.words(path.Join(m.point, "cgroup.controllers")), mount: m.point, own: m.place(groups[""])}
			}
			continue
		}
		use := slices.DeleteFunc(usable(m.super), func(c string) bool { return bound[c] })
		if len(use) == 0 {
			continue
		}
		for _, c := range use {
			bound[c] = true
		}
		h.legacy = append(h.legacy, hierarchy{controllers: use, mount: m.point, own: m.place(groups[use[0]])})
	}
	h.Mode = h.mode()
}

func (h *Host) mode() Mode {
	switch {
	case h.unified != nil && len(h.legacy) > 0:
		return ModeHybrid
	case h.unified != nil:
		return ModeUnified
	case len(h.legacy) > 0:
		return ModeLegacy
	}
	return ModeNone
}

func (m mount) sees(groups map[string]string) bool {
	if m.v2 {
		return m.place(groups[""]) != ""
	}
	use := usable(m.super)
	return len(use) > 0 && m.place(groups[use[0]]) != ""
}

// usable keeps the v1 controllers that sandboxes need out of mount options.
func usable(options []string) []string {
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

// words reads a file of blank-separated words; an unreadable one has none.
func (h *Host) words(file string) []string {
	text, err := h.tree.read(file)
	if err != nil {
		return nil
	}
	return strings.Fields(text)
}

// Possible says, best first, which enforcement a sandbox with limits would get
// and why the others are out of reach. It changes nothing.
func (h Host) Possible() []Possibility {
	var list []Possibility
	for _, p := range h.plans(Limits{MemoryBytes: 1, PIDs: 1, CPU: 1}) {
		one := Possibility{Enforcement: p.enforcement, OK: p.err == nil}
		if p.err != nil {
			one.Reason = p.err.Error()
		}
		list = append(list, one)
	}
	return list
}
