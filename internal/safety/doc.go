// Package safety decides who may end which sandbox, and is the only way in which sandboxes
// are ended.
//
// It holds the limits of a run (guards), the reasons to keep a single sandbox (protection,
// the lease of a task, a wrong clock, the read just before the end) and the table of which
// rule binds which verb. Requesting and verifying an end is in fleet; the selection of
// sandboxes is in the package of each verb. Configuration and stores are handed in.
package safety
