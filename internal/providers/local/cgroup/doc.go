// Package cgroup limits local sandboxes: it detects which control groups this host offers,
// makes one group per sandbox, and joins, counts, freezes, kills and removes it.
//
// Groups are plain files: no daemon is called, except that a systemd user scope is described
// as a command line for the caller to run. The package is linked into the detached
// supervisor, so it has no initialization. It reports the kernel's own figures; what they
// prove (an OOM, a leak) is judged elsewhere.
package cgroup
