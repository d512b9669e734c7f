package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx/internal/sandbox"
)

// holderName is the name of the directory that contains all groups of sbx.
const holderName = "sbx"

// plan is one way to hold a sandbox, checked without changes.
type plan struct {
	enforcement sandbox.Enforcement
	sites       []site
	missing     []Missing
	err         error // why this way is unavailable
}

// site is one directory of a plan.
type site struct {
	hierarchy
	base string   // the parent group of `sbx`
	use  []string // the controllers that the sandbox uses here
}

// Missing is a requested limit that is not enforced.
type Missing struct {
	Limit  string `json:"limit"` // memory, swap, pids or cpu
	Reason string `json:"reason"`
}

// listPlans lists the three ways, best first.
func (h Host) listPlans(l Limits) []plan {
	return []plan{h.planUnified(l), h.planHybrid(l), h.planLegacy(l)}
}

// planUnified uses memory of cgroup v2.
func (h Host) planUnified(l Limits) plan {
	p := plan{enforcement: sandbox.EnforcementCgroup2}
	switch {
	case h.unified == nil:
		p.err = errors.New("cgroup v2 is not mounted")
	case !slices.Contains(h.unified.controllers, "memory"):
		p.err = errors.New("cgroup v2 has no memory controller here")
		if h.legacyHierarchy("memory") != nil {
			p.err = errors.New("the memory controller is bound to cgroup v1")
		}
	default:
		p.addUnified(h, "memory")
		p.addOthers(h, l, "memory")
	}
	return p
}

// planHybrid uses memory of v1; membership, kill, freeze and CPU time of v2.
func (h Host) planHybrid(l Limits) plan {
	p := plan{enforcement: sandbox.EnforcementHybrid}
	switch {
	case h.unified == nil:
		p.err = errors.New("cgroup v2 is not mounted")
	case h.legacyHierarchy("memory") == nil:
		p.err = errors.New("cgroup v1 has no memory controller here")
	default:
		p.addUnified(h)
		p.addLegacy(h, "memory", true)
		p.addOthers(h, l, "memory")
	}
	return p
}

// planLegacy uses v1 alone: killing is a loop, with the help of freezer and pids.
func (h Host) planLegacy(l Limits) plan {
	p := plan{enforcement: sandbox.EnforcementCgroup1}
	if h.legacyHierarchy("memory") == nil {
		p.err = errors.New("cgroup v1 has no memory controller here")
		return p
	}
	p.addLegacy(h, "memory", true)
	for _, c := range []string{"freezer", "pids", "cpuacct"} {
		p.addLegacy(h, c, false)
	}
	p.addOthers(h, l, "memory", "freezer", "pids", "cpuacct")
	for _, c := range l.neededControllers() {
		p.noteMissing(c)
	}
	return p
}

// addOthers adds the needed controllers that have no directory yet.
func (p *plan) addOthers(h Host, l Limits, placed ...string) {
	for _, c := range l.neededControllers() {
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
		p.noteMissing(c)
	}
}

// noteMissing records a controller without a directory.
func (p *plan) noteMissing(controller string) {
	placed := slices.ContainsFunc(p.sites, func(s site) bool { return slices.Contains(s.use, controller) })
	if p.err == nil && !placed && !hasMissingLimit(p.missing, controller) {
		p.missing = append(p.missing, Missing{controller, "no usable " + controller + " controller"})
	}
}

func hasMissingLimit(missing []Missing, limit string) bool {
	return slices.ContainsFunc(missing, func(m Missing) bool { return m.Limit == limit })
}

// addUnified adds the v2 directory.
func (p *plan) addUnified(h Host, need ...string) {
	base, err := h.firstBase(*h.unified, need)
	if err != nil {
		p.err = err
		return
	}
	p.sites = append(p.sites, site{hierarchy: *h.unified, base: base, use: slices.Clone(need)})
}

// addLegacy adds a v1 controller; it uses the directory of another controller in the same
// hierarchy, if there is one.
func (p *plan) addLegacy(h Host, controller string, required bool) {
	hi := h.legacyHierarchy(controller)
	if hi == nil || p.err != nil {
		return
	}
	if i := slices.IndexFunc(p.sites, func(s site) bool { return s.mount == hi.mount }); i >= 0 {
		p.sites[i].use = append(p.sites[i].use, controller)
		return
	}
	base, err := h.firstBase(*hi, nil)
	switch {
	case err == nil:
		p.sites = append(p.sites, site{hierarchy: *hi, base: base, use: []string{controller}})
	case required:
		p.err = err
	}
}

// firstBase is the first usable base of a hierarchy, or the reasons why there is none.
func (h Host) firstBase(hi hierarchy, need []string) (string, error) {
	var why []string
	for _, base := range h.candidateBases(hi) {
		err := h.usableBase(hi, base, need)
		if err == nil {
			return base, nil
		}
		why = append(why, err.Error())
	}
	return "", errors.New(strings.Join(why, ", "))
}

// legacyHierarchy finds the v1 hierarchy of a controller.
func (h Host) legacyHierarchy(controller string) *hierarchy {
	for i := range h.legacy {
		if slices.Contains(h.legacy[i].controllers, controller) {
			return &h.legacy[i]
		}
	}
	return nil
}

// candidateBases lists possible parents of groups: the process's own group and its ancestors,
// as far as they are delegated to this user, else the top of the hierarchy. In v2 a group
// with processes of its own cannot enable memory for its children, so a process with a
// delegated tree is in a leaf of it and uses the groups above. Groups that a service manager
// manages itself are not used: it provides scopes.
func (h Host) candidateBases(hi hierarchy) []string {
	var list []string
	if hi.own != "" {
		for dir := hi.own; dir != hi.mount && h.rights.isDelegated(dir) && !isManaged(dir); dir = path.Dir(dir) {
			list = append(list, dir)
		}
	}
	return append(list, hi.mount)
}

// isManaged matches the slices of systemd and the service of a user's own systemd.
func isManaged(dir string) bool {
	name := path.Base(dir)
	return strings.HasSuffix(name, ".slice") || (strings.HasPrefix(name, "user@") && strings.HasSuffix(name, ".service"))
}

// usableBase says why no group can be made or joined below base.
func (h Host) usableBase(hi hierarchy, base string, need []string) error {
	holder := path.Join(base, holderName)
	if !fileExists(h.tree, holder) {
		holder = base
	}
	err := h.rights.checkWritable(holder)
	if noSuchGroup(err) { // it was removed meanwhile
		err = h.rights.checkWritable(base)
	}
	if err != nil {
		return fmt.Errorf("no group can be made below %s: %w", holder, err)
	}
	if hi.v2 && hi.own != "" {
		door := path.Join(commonDir(hi.own, path.Join(base, holderName)), "cgroup.procs")
		if err := h.rights.checkWritable(door); err != nil {
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

// canEnable says why groups below base cannot have a v2 controller. Only the real root (no
// cgroup.events) may be changed to enable one: every other group belongs to another program,
// and one with processes would refuse.
func (h Host) canEnable(base, controller string) error {
	if !slices.Contains(h.readWords(path.Join(base, "cgroup.controllers")), controller) {
		return fmt.Errorf("%s has no %s controller", base, controller)
	}
	control := path.Join(base, "cgroup.subtree_control")
	if slices.Contains(h.readWords(control), controller) {
		return nil
	}
	if fileExists(h.tree, path.Join(base, "cgroup.events")) {
		return fmt.Errorf("%s does not delegate the %s controller", base, controller)
	}
	if err := h.rights.checkWritable(control); err != nil {
		return fmt.Errorf("the %s controller cannot be delegated: %w", controller, err)
	}
	return nil
}

// commonDir is the deepest directory that contains both.
func commonDir(a, b string) string {
	for a != b {
		if len(a) > len(b) {
			a = path.Dir(a)
		} else {
			b = path.Dir(b)
		}
	}
	return a
}
