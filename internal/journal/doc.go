// Package journal keeps what a destructive run set out to do and what became of
// it: one file a run, one line an entry, written before the deed and durable when
// Append returns.
//
// The entries of a run are chained by their hashes, and a run begins with the hash
// where the run before it stood, so that a line that was changed, dropped or added
// shows. What the entries mean is the business of the rooms that write them; no
// sandbox, no provider and no decision enters this room.
package journal
