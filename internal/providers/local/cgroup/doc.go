// Package cgroup holds a local sandbox inside its limits: it finds out which
// control groups this host offers, makes one group per sandbox, and joins,
// counts, freezes, kills and removes it.
//
// Groups are plain files: nothing here speaks to a daemon, except that a
// systemd user scope is described as an argument list for others to run. The
// room is linked into the detached supervisor, so it does nothing at start and
// imports only the standard library and x/sys. What a count proves (an OOM, a
// leak) is judged elsewhere; here are only the kernel's own figures.
package cgroup
