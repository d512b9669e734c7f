// Package plain opens the files of a sandbox's folder, and only what is a file.
//
// A sandbox's program runs with the rights of whoever started it and can reach
// the folder: it may leave a FIFO, a link or a folder where a file belongs, by
// accident or not. Nothing here waits for a FIFO's other end, and nothing
// follows a link into somebody else's file. What the files mean is the business
// of the rooms that open them.
package plain

import "errors"

// ErrNotPlain is what stands where a regular file belongs and is none.
var ErrNotPlain = errors.New("not a regular file")

// ErrTooLong is what Read says of a file beyond its limit.
var ErrTooLong = errors.New("too long")
