// Package safety says who may end which sandbox, and is the one door through which a
// sandbox ends.
//
// It holds the limits of a run (guards), what keeps a single sandbox (protection, the
// lease of a task, a clock that cannot be trusted, the read just before the end) and the
// table of which rule binds which verb. How an end is asked for and verified is in
// fleet; why a verb selects a sandbox is in the room of that verb. It reads no
// configuration and no store: both are handed in.
package safety
