package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx/internal/sandbox"
)

// top is the name of the directory that holds all groups of sbx.
const top = "sbx"

// plan is one way to hold a sandbox, judged by looking only.
type plan struct {
	enforcement sandbox.Enforcement
	sites       []site
	missing     []Missing
	err         error // why this way is closed
}

// site is where a plan puts one directory, and what shall work there.
type site struct {
	hierarchy
	base string   // the group below which `sbx` stands
	use  []string // the controllers that the sandbox takes from here
}

// Missing is a limit that was asked for and is not enforced.
type Missing struct {
	Limit  string `json:"limit"` // memory, swap, pids or cpu
	Reason string `json:"reason"`
}

// plans lists the three ways, best first, open or closed.
func (h Host) plans(l Limits) []plan {
	return []plan{h.planUnified(l), h.planHybrid(l), h.planLegacy(l)}
}

// planUnified takes memory from cgroup v2.
func (h Host) planUnified(l Limits) plan {
	p := plan{enforcement: sandbox.EnforcementCgroup2}
	switch {
	case h.unified == nil:
		p.err = errors.New("cgroup v2 is not mounted")
	case !slices.Contains(h.unified.controllers, "memory"):
		p.err = errors.New("cgroup v2 has no memory controller here")
		if h.bound("memory") != nil {
			p.err = errors.New("the memory controller is bound to cgroup v1")
		}
	default:
		p.addUnified(h, "memory")
		p.addOthers(h, l, "memory")
	}
	return p
}

// planHybrid takes memory from v1; membership, kill, freeze and CPU time from
// v2.
func (h Host) planHybrid(l Limits) plan {
	p := plan{enforcement: sandbox.EnforcementHybrid}
	switch {
	case h.unified == nil:
		p.err = errors.New("cgroup v2 is not mounted")
	case h.bound("memory") == nil:
		p.err = errors.New("cgroup v1 has no memory controller here")
	default:
		p.addUnified(h)
		p.addLegacy(h, "memory", true)
		p.addOthers(h, l, "memory")
	}
	return p
}

// planLegacy uses v1 alone: killing is a loop, helped by freezer and pids.
func (h Host) planLegacy(l Limits) plan {
	p := plan{enforcement: sandbox.EnforcementCgroup1}
	if h.bound("memory") == nil {
		p.err = errors.New("cgroup v1 has no memory controller here")
		return p
	}
	p.addLegacy(h, "memory", true)
	for _, c := range []string{"freezer", "pids", "cpuacct"} {
		p.addLegacy(h, c, false)
	}
	p.addOthers(h, l, "memory", "freezer", "pids", "cpuacct")
	for _, c := range l.wants() {
		p.note(c)
	}
	return p
}

// addOthers adds the wanted controllers that are not placed yet.
func (p *plan) addOthers(h Host, l Limits, placed ...string) {
	for _, c := range l.wants() {
		if p.err != nil || slices.Contains(placed, c) {
			continue
		}
		if i := slices.IndexFunc(p.sites, func(s site) bool { return s.v2 }); i >= 0 && slices.Contains(h.unified.controllers, c) {
			if err := h.canEnable(p.sites[i].base, c); err != nil {
				p.missing = append(p.missing, Missing{c, err.Error()})
				continue
			}
			p.sites[i].use = append(p.sites[i].use, c)
			continue
		}
		p.addLegacy(h, c, false)
		p.note(c)
	}
}

// note records a controller that found no place.
func (p *plan) note(controller string) {
	placed := slices.ContainsFunc(p.sites, func(s site) bool { return slices.Contains(s.use, controller) })
	known := slices.ContainsFunc(p.missing, func(m Missing) bool { return m.Limit == controller })
	if p.err == nil && !placed && !known {
		p.missing = append(p.missing, Missing{controller, "no usable " + controller + " controller"})
	}
}

// addUnified places the v2 directory.
func (p *plan) addUnified(h Host, need ...string) {
	var why []string
	for _, base := range h.bases(*h.unified) {
		if err := h.usableBase(*h.unified, base, need); err != nil {
			why = append(why, err.Error())
			continue
		}
		p.sites = append(p.sites, site{hierarchy: *h.unified, base: base, use: slices.Clone(need)})
		return
	}
	p.err = errors.New(strings.Join(why, ", "))
}

// addLegacy places a v1 controller; where it shares its hierarchy with one that
// has a place, it shares the directory.
func (p *plan) addLegacy(h Host, controller string, required bool) {
	hi := h.bound(controller)
	if hi == nil || p.err != nil {
		return
	}
	if i := slices.IndexFunc(p.sites, func(s site) bool { return s.mount == hi.mount }); i >= 0 {
		p.sites[i].use = append(p.sites[i].use, controller)
		return
	}
	var why []string
	for _, base := range h.bases(*hi) {
		if err := h.usableBase(*hi, base, nil); err != nil {
			why = append(why, err.Error())
			continue
		}
		p.sites = append(p.sites, site{hierarchy: *hi, base: base, use: []string{controller}})
		return
	}
	if required {
		p.err = errors.New(strings.Join(why, ", "))
	}
}

// bound finds the v1 hierarchy of a controller.
func (h Host) bound(controller string) *hierarchy {
	for i := range h.legacy {
		if slices.Contains(h.legacy[i].controllers, controller) {
			return &h.legacy[i]
		}
	}
	return nil
}

// bases lists where groups may stand: below the process's own group and those
// around it, as far up as they were given to this user, else below the top of
// the hierarchy. In v2 a group that holds processes hands no memory down, so a
// process that was given a tree stands in a leaf of it and uses the room above.
// What a service manager keeps for itself is no such room: it hands out scopes.
func (h Host) bases(hi hierarchy) []string {
	var list []string
	if hi.own != "" {
		for dir := hi.own; dir != hi.mount && h.rights.delegated(dir) && !managed(dir); dir = path.Dir(dir) {
			list = append(list, dir)
		}
	}
	return append(list, hi.mount)
}

// managed holds for the slices of systemd and for the service in which a user's
// own systemd works.
func managed(dir string) bool {
	name := path.Base(dir)
	return strings.HasSuffix(name, ".slice") || (strings.HasPrefix(name, "user@") && strings.HasSuffix(name, ".service"))
}

// usableBase says why no group can be made or joined below base.
func (h Host) usableBase(hi hierarchy, base string, need []string) error {
	holder := path.Join(base, top)
	if !exists(h.tree, holder) {
		holder = base
	}
	err := h.rights.writable(holder)
	if gone(err) { // tidied away in this moment
		err = h.rights.writable(base)
	}
	if err != nil {
		return fmt.Errorf("no group can be made below %s: %w", holder, err)
	}
	if hi.v2 && hi.own != "" {
		door := path.Join(common(hi.own, path.Join(base, top)), "cgroup.procs")
		if err := h.rights.writable(door); err != nil {
			return fmt.Errorf("no process can be moved below %s: %w", base, err)
		}
	}
	for _, c := range need {
		if err := h.canEnable(base, c); err != nil {
			return err
		}
	}
	return nil
}

// canEnable says why groups below base cannot have a v2 controller. Only the
// real root (no cgroup.events) may still be told to hand one down: every other
// group belongs to somebody, and one that holds processes would refuse.
func (h Host) canEnable(base, controller string) error {
	if !slices.Contains(h.words(path.Join(base, "cgroup.controllers")), controller) {
		return fmt.Errorf("%s has no %s controller", base, controller)
	}
	control := path.Join(base, "cgroup.subtree_control")
	if slices.Contains(h.words(control), controller) {
		return nil
	}
	if exists(h.tree, path.Join(base, "cgroup.events")) {
		return fmt.Errorf("%s does not hand down the %s controller", base, controller)
	}
	if err := h.rights.writable(control); err != nil {
		return fmt.Errorf("the %s controller cannot be handed down: %w", controller, err)
	}
	return nil
}

// common is the deepest directory that holds both.
func common(a, b string) string {
	for a != b {
		if len(a) > len(b) {
			a = path.Dir(a)
		} else {
			b = path.Dir(b)
		}
	}
	return a
}
