// Package ops has one function for each operation of sbx: it looks, decides by the rules of
// the rooms below, acts, and says what came of it as a value. Locks, journals, leases,
// notifications and the settling of tasks that dead processes left happen here, so that a
// command line, a dashboard and a runbook are skins over the same operations.
//
// An operation reports to an observer while it works. What only people can answer is part of a
// plan (Act), which a skin asks before it carries it out. An operation prints nothing: no stream of
// the process, no column, no page and no flag enters this room.
package ops
