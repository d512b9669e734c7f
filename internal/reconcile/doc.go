// Package reconcile compares the records of control planes with the sandboxes that
// providers run, in both directions: records without a sandbox, sandboxes without a record,
// and pairs that disagree.
//
// A plan is made first and changes nothing; Fix carries out what the plan allows, and in
// doubt every rule leaves a sandbox alone. All input is handed in: the fleet, the records,
// the clock, earlier observations, the journal, protection, ownership and limits. Flags,
// output, wire formats and SQL do not belong here.
package reconcile
