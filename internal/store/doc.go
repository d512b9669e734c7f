// Package store is what must survive the process and may be shared by several
// hosts: leases, sightings, the records of what sbx created, summaries of bulk
// runs, tasks and small documents of other rooms. SQLite in the state directory by default, Postgres for a team, memory for
// tests and simulations; one contract (storetest) holds for all three.
//
// It judges nothing: what a sighting proves, a lease protects or a task's state
// means is decided by whoever asks. No provider and no verb enters, and no other room speaks SQL.
package store
