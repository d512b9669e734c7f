// Package cleanup ends many sandboxes by rule, safely enough for a cron line: it lists the
// complete fleet, gives a reason for each sandbox that stays or goes, refuses as a whole
// where a guard refuses, records each end before it is requested, and reports no end that
// was not seen.
//
// Whatever is unknown keeps a sandbox and is counted: its age, its activity, an incomplete
// listing. Wire formats, output and file formats do not belong here; the fleet ends and
// verifies a single sandbox.
package cleanup
