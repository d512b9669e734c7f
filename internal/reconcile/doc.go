// Package reconcile holds what control planes have on record against what
// providers really run, in both directions: records without a sandbox, sandboxes
// without a record, and pairs that disagree.
//
// A plan is made first and changes nothing; Fix carries out what the plan allows,
// and every rule here leans towards leaving a sandbox alone. Everything comes from
// outside: the fleet, the records, the clock, what was observed before, the
// journal, what is protected and owned, the limits. No flag, no output, no wire
// format and no SQL enters this room.
package reconcile
