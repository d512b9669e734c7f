package cgroup

import (
	"math"
	"path"
	"strconv"
	"strings"
)

// scopeChild is the group below a systemd scope that holds the program, so that
// the supervisor beside it survives a kill.
const scopeChild = "program"

func unitName(id string) string { return "sbx-" + id }

// ScopeArgs is the command line that runs command inside a systemd user scope
// with the limits, from its first byte. The scope is delegated, so that
// OwnScope can make a group in it; systemd removes it when it is empty.
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

// ScopeAvailable says whether ScopeArgs can work for the caller, and if not,
// why. Environment and files come through lookup and stat, so that nothing is
// read ambiently.
func ScopeAvailable(lookup func(key string) (string, bool), stat func(file string) error) (bool, string) {
	if stat("/run/systemd/system") != nil {
		return false, "the machine was not started with systemd"
	}
	if !onPath(lookup, stat, "systemd-run") {
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

func onPath(lookup func(string) (string, bool), stat func(string) error, name string) bool {
	list, _ := lookup("PATH")
	for dir := range strings.SplitSeq(list, ":") {
		if path.IsAbs(dir) && stat(path.Join(dir, name)) == nil {
			return true
		}
	}
	return false
}
