// Package store keeps what must survive the process and may be shared by several hosts:
// leases, sightings, the records of what sbx created, summaries of bulk runs, tasks and
// small documents of other packages. It is SQLite in the state directory by default,
// Postgres for a team, and memory for tests and simulations; one contract (storetest) holds
// for all three.
//
// It judges nothing: callers decide what a sighting proves, a lease protects or a task's
// state means. Providers and verbs do not belong here, and no other package uses SQL.
package store
