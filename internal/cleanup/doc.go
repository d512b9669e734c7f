// Package cleanup ends many sandboxes at once, so that a cron line may be trusted
// with it: it looks at the complete fleet, says of each sandbox why it goes or
// stays, refuses as a whole where a guard says no, writes each deed down before it
// is done, and claims no end that was not seen.
//
// Whatever is not known keeps a sandbox and is counted: no age, no sign of life
// either way, a listing with a hole (DESIGN section 7). No wire format, no printing
// and no file format enters this room; how one sandbox is ended and verified is the
// fleet's.
package cleanup
