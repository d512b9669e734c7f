// Package identity says who a process is, so that a signal never reaches a
// foreign one: a process is its boot, its number and the inode of its pidfd (or
// its start time where the kernel gives no inode), and every signal goes through
// a descriptor that was opened first and compared afterwards. It also looks
// around in the process table: descendants, leftovers that carry a mark,
// what a process ignores and what it waits for.
//
// The room is linked into the detached supervisor: nothing but the standard
// library and x/sys enters it, nothing runs at init, and no knowledge of
// sandboxes, records or cgroups.
package identity
