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

	"sbx/internal/sandbox"
)

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
