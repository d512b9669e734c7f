// Package selector decides which sandboxes a verb is about. Every command that
// takes selectors asks this one engine, so that ls shows exactly what cleanup
// would take.
//
// It holds pure rules over values that are handed in: flag texts are compiled
// once into a Selector, a Selector judges one sandbox at a time, and what it
// cannot judge is unknown with a reason, never a match. No provider, no clock,
// no printing and no knowledge of what "stuck" means enters this room: the
// stuck rule is passed in by the caller.
package selector
