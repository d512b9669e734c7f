package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sbx/internal/sandbox"
)

var (
	// ErrNoCgroup says that no group can hold a sandbox here; the text lists the reason of
	// each kind of group.
	ErrNoCgroup = errors.New("no usable control group")
	// ErrExists says that a group with this id exists. It is never reused.
	ErrExists = errors.New("control group exists")
	// ErrName is wrapped for an id or owner that cannot be a directory name.
	ErrName = errors.New("not usable as the name of a control group")
)

// maxName limits ids and owners, in bytes; directory names are limited to 255.
const maxName = 100

func isValidName(word string) bool {
	if word == "" || len(word) > maxName {
		return false
	}
	return !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// Create makes a group for the sandbox id in the best way that works: memory of cgroup v2,
// else memory of v1 with membership of v2, else v1 alone. A failure removes what was made
// and tries the next way; the error is ErrNoCgroup with every reason, ErrExists, ErrName or
// ErrLimits.
//
// A requested memory limit is enforced or Create fails. Other limits that cannot be enforced
// are listed by Group.Missing.
func Create(h Host, id string, l Limits) (*Group, error) {
	if err := l.checkLimits(); err != nil {
		return nil, err
	}
	if !isValidName(id) {
		return nil, fmt.Errorf("%w: id %q", ErrName, id)
	}
	if h.unified == nil && len(h.legacy) == 0 {
		return nil, fmt.Errorf("%w: none is mounted", ErrNoCgroup)
	}
	var why []string
	for _, p := range h.listPlans(l) {
		if p.err == nil {
			g, err := h.buildGroup(p, id, l)
			if err == nil || errors.Is(err, ErrExists) {
				return g, err
			}
			p.err = err
		}
		why = append(why, string(p.enforcement)+": "+p.err.Error())
	}
	return nil, fmt.Errorf("%w: %s", ErrNoCgroup, strings.Join(why, "; "))
}

// buildGroup carries out a plan completely or not at all.
func (h Host) buildGroup(p plan, id string, l Limits) (*Group, error) {
	g := newGroup(h.tree, State{ID: id, Enforcement: p.enforcement, Missing: p.missing})
	for _, s := range p.sites {
		d, err := h.makeDir(g, s, h.dirName(id))
		if err == nil {
			g.state.Dirs = append(g.state.Dirs, d)
			err = g.writeLimits(d, l)
		}
		if err != nil {
			for _, made := range slices.Backward(g.state.Dirs) {
				_ = h.tree.removeGroupDir(made.Path)
			}
			return nil, err
		}
	}
	return g, nil
}

// dirName is the name of the group's directories: ids contain no dot, so the owner before
// the dot is unambiguous.
func (h Host) dirName(id string) string {
	if h.owner == "" {
		return id
	}
	return h.owner + "." + id
}

// makeDir makes one directory. The holder `sbx` is shared: another process may remove it
// between the two steps, so they are retried.
func (h Host) makeDir(g *Group, s site, name string) (Dir, error) {
	holder := path.Join(s.base, holderName)
	d := Dir{V2: s.v2, Path: path.Join(holder, name)}
	var err error
	for range 5 {
		if err = h.openHolder(g, s, holder); err != nil {
			return d, err
		}
		if err = h.tree.makeGroupDir(d.Path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return d, fmt.Errorf("%w: %s", ErrExists, d.Path)
	}
	if err != nil {
		return d, err
	}
	if s.v2 { // the holder may be a new one; from now on it is not empty and stays
		err = h.enableControllers(g, holder, s.use)
	}
	d.Controllers = g.availableControllers(s.use)
	if err == nil {
		d.Inode, err = h.tree.inodeOfDir(d.Path)
	}
	if err != nil {
		_ = h.tree.removeGroupDir(d.Path)
	}
	return d, err
}

// openHolder makes the directory `sbx` and enables the v2 controllers in it, one by one, so
// that the refusal of one does not affect the others.
func (h Host) openHolder(g *Group, s site, holder string) error {
	if s.v2 {
		if err := h.enableControllers(g, s.base, s.use); err != nil {
			return err
		}
	}
	if err := h.tree.makeGroupDir(holder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.v2 {
		if err := h.enableControllers(g, holder, s.use); err != nil && !noSuchGroup(err) {
			return err
		}
	}
	return nil
}

// enableControllers enables controllers for the children of a group. Without memory the plan
// fails; any other controller becomes a missing limit.
func (h Host) enableControllers(g *Group, dir string, controllers []string) error {
	control := path.Join(dir, "cgroup.subtree_control")
	on := h.readWords(control)
	for _, c := range controllers {
		if slices.Contains(on, c) {
			continue
		}
		err := h.tree.writeFile(control, "+"+c)
		if err != nil && c == "memory" {
			return err
		}
		if err != nil {
			g.addMissing(c, err)
		}
	}
	return nil
}

func (g *Group) writeLimits(d Dir, l Limits) error {
	for _, c := range d.Controllers {
		for _, s := range l.controllerSettings(d.V2, c) {
			err := g.tree.writeFile(path.Join(d.Path, s.file), s.value)
			switch {
			case err == nil || s.ignorable:
			case s.required:
				return err
			default:
				g.addMissing(s.limit, err)
			}
		}
	}
	return nil
}

// addMissing records a limit that is not enforced, once.
func (g *Group) addMissing(limit string, err error) {
	if !hasMissingLimit(g.state.Missing, limit) {
		g.state.Missing = append(g.state.Missing, Missing{limit, err.Error()})
	}
}

// availableControllers leaves out the controllers that could not be enabled.
func (g *Group) availableControllers(use []string) []string {
	var list []string
	for _, c := range use {
		if !hasMissingLimit(g.state.Missing, c) {
			list = append(list, c)
		}
	}
	return list
}

// isBusy reports whether the kernel refuses temporarily.
func isBusy(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY)
}

// ErrLimits is wrapped for invalid limits.
var ErrLimits = errors.New("impossible limits")

// Limits are what a group may use; zero means no limit.
type Limits struct {
	MemoryBytes int64   // of all processes together, page cache included
	PIDs        int64   // threads and processes at the same time
	CPU         float64 // cores, over periods of 100 ms
}

// cpuPeriod is the kernel's default accounting period, in microseconds; minQuota is the
// smallest quota that it accepts.
const (
	cpuPeriod = 100_000
	minQuota  = 1_000
)

func (l Limits) checkLimits() error {
	switch {
	case l.MemoryBytes < 0:
		return fmt.Errorf("%w: memory below zero", ErrLimits)
	case l.PIDs < 0:
		return fmt.Errorf("%w: pids below zero", ErrLimits)
	case l.CPU < 0 || math.IsNaN(l.CPU) || math.IsInf(l.CPU, 0):
		return fmt.Errorf("%w: cpu must be a number of cores", ErrLimits)
	}
	return nil
}

func (l Limits) cpuQuota() int64 {
	return max(minQuota, int64(math.Round(l.CPU*cpuPeriod)))
}

// setting is one value to write into a group.
type setting struct {
	file, value string
	limit       string // what is not enforced when the write fails
	required    bool   // the group is useless without it
	ignorable   bool   // another setting covers it
}

// controllerSettings lists the settings of a controller in one hierarchy, in the order of
// writing.
//
// memory.oom.group stays 0: the kernel then kills only the process with the highest score,
// so that the death of a child is distinguishable from that of the main program.
func (l Limits) controllerSettings(v2 bool, controller string) []setting {
	n := strconv.FormatInt
	switch {
	case controller == "memory" && l.MemoryBytes > 0 && v2:
		return []setting{
			{file: "memory.max", value: n(l.MemoryBytes, 10), limit: "memory", required: true},
			{file: "memory.swap.max", value: "0", limit: "swap"},
			{file: "memory.oom.group", value: "0", ignorable: true},
		}
	case controller == "memory" && l.MemoryBytes > 0:
		return []setting{
			{file: "memory.limit_in_bytes", value: n(l.MemoryBytes, 10), limit: "memory", required: true},
			{file: "memory.swappiness", value: "0", ignorable: true},
			{file: "memory.memsw.limit_in_bytes", value: n(l.MemoryBytes, 10), limit: "swap"},
		}
	case controller == "pids" && l.PIDs > 0:
		return []setting{{file: "pids.max", value: n(l.PIDs, 10), limit: "pids"}}
	case controller == "cpu" && l.CPU > 0 && v2:
		return []setting{{file: "cpu.max", value: n(l.cpuQuota(), 10) + " " + strconv.Itoa(cpuPeriod), limit: "cpu"}}
	case controller == "cpu" && l.CPU > 0:
		return []setting{
			{file: "cpu.cfs_period_us", value: strconv.Itoa(cpuPeriod), limit: "cpu"},
			{file: "cpu.cfs_quota_us", value: n(l.cpuQuota(), 10), limit: "cpu"},
		}
	}
	return nil
}

// neededControllers lists the controllers of a sandbox. Memory is always one of them: its
// counters are the only proof of an OOM.
func (l Limits) neededControllers() []string {
	list := []string{"memory"}
	if l.PIDs > 0 {
		list = append(list, "pids")
	}
	if l.CPU > 0 {
		list = append(list, "cpu")
	}
	return list
}

// scopeChild is the group below a systemd scope for the program, so that the supervisor in
// the scope survives a kill.
const scopeChild = "program"

func unitName(id string) string { return "sbx-" + id }

// ScopeArgs is the command line that runs command inside a systemd user scope with the
// limits. The scope is delegated, so that OwnScope can make a group in it; systemd removes it
// when it is empty.
func ScopeArgs(id string, l Limits, command []string) []string {
	args := []string{"systemd-run", "--user", "--scope", "--quiet", "--collect"}
	property := func(name, value string) { args = append(args, "-p", name+"="+value) }
	if l.MemoryBytes > 0 {
		property("MemoryMax", strconv.FormatInt(l.MemoryBytes, 10))
		property("MemorySwapMax", "0")
	}
	if l.PIDs > 0 {
		property("TasksMax", strconv.FormatInt(l.PIDs, 10))
	}
	if l.CPU > 0 {
		property("CPUQuota", strconv.FormatInt(max(1, int64(math.Round(l.CPU*100))), 10)+"%")
	}
	property("Delegate", "yes")
	return append(append(args, "--unit="+unitName(id), "--"), command...)
}

// ScopeAvailable reports whether ScopeArgs can work for the caller, and if not, why not.
// Environment and files are read by lookup and stat.
func ScopeAvailable(lookup func(key string) (string, bool), stat func(file string) error) (bool, string) {
	if stat("/run/systemd/system") != nil {
		return false, "the machine was not started with systemd"
	}
	if !isOnPath(lookup, stat, "systemd-run") {
		return false, "systemd-run is not on PATH"
	}
	dir, ok := lookup("XDG_RUNTIME_DIR")
	if !ok || dir == "" {
		return false, "XDG_RUNTIME_DIR is not set, as under cron: set it to /run/user/UID and enable lingering"
	}
	if bus := path.Join(dir, "bus"); stat(bus) != nil {
		return false, "there is no user bus at " + bus
	}
	return true, ""
}

func isOnPath(lookup func(string) (string, bool), stat func(string) error, name string) bool {
	list, _ := lookup("PATH")
	for dir := range strings.SplitSeq(list, ":") {
		if path.IsAbs(dir) && stat(path.Join(dir, name)) == nil {
			return true
		}
	}
	return false
}

// ErrNoScope says that the process is not inside a scope of ScopeArgs.
var ErrNoScope = errors.New("not inside a systemd scope of this sandbox")

// OwnScope is the group of a sandbox whose supervisor runs inside the scope of ScopeArgs. The
// program gets a child group, for membership, kill and freeze; limits and memory counters
// stay with the scope, which systemd removes.
func OwnScope(h Host, id string) (*Group, error) {
	if !isValidName(id) {
		return nil, fmt.Errorf("%w: id %q", ErrName, id)
	}
	if h.unified == nil || path.Base(h.unified.own) != unitName(id)+".scope" {
		return nil, fmt.Errorf("%w: %s", ErrNoScope, id)
	}
	scope := h.unified.own
	use := h.readWords(path.Join(scope, "cgroup.controllers"))
	if !slices.Contains(use, "memory") {
		return nil, fmt.Errorf("%w: %s has no memory controller", ErrNoCgroup, scope)
	}
	child := path.Join(scope, scopeChild)
	if err := h.tree.makeGroupDir(child); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s", ErrExists, child)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	g := newGroup(h.tree, State{ID: id, Enforcement: sandbox.EnforcementScope})
	for _, d := range []Dir{{V2: true, Path: child}, {V2: true, Path: scope, Controllers: use, Borrowed: true}} {
		inode, err := h.tree.inodeOfDir(d.Path)
		if err != nil {
			_ = h.tree.removeGroupDir(child)
			return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
		}
		d.Inode = inode
		g.state.Dirs = append(g.state.Dirs, d)
	}
	return g, nil
}
