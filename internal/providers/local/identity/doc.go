// Package identity identifies processes, so that a signal never reaches another process: a
// process is its boot, its PID and the inode of its pidfd (or its start time where the kernel
// gives no inode), and every signal goes through a descriptor that was opened first and
// compared afterwards. It also reads the process table: descendants, processes with a mark in
// their environment, ignored signals and what a process waits for.
//
// The package is linked into the detached supervisor: it imports only the standard library
// and x/sys, runs nothing at init, and knows no sandboxes, records or cgroups.
package identity
