// Package local runs sandboxes as real processes of this machine, inside real limits: a
// supervisor and a stub around each program, cgroups where available, a watchdog elsewhere,
// and records on disk that survive crashes.
//
// It is no security boundary: a program has access to the machine's files and network with
// the rights of the user who started it. Every response says what enforces the limits. The
// reason of an end is judged by the package triage; wire formats of other providers and
// output do not belong here.
package local
