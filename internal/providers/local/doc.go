// Package local runs sandboxes as real processes of this machine, inside real
// limits: a supervisor and a stub around each program, cgroups where they can
// be had, a watchdog where not, and records on disk that survive everything.
//
// It is no security boundary: a program sees the machine's files and network
// with the rights of whoever started it. What enforces the limits is said in
// every answer. Judging why something ended is triage's business; no other
// provider's wire format and no output enters this room.
package local
