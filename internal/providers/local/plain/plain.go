// Package plain opens the files of a sandbox's folder, and only regular files.
//
// A sandbox's program has the rights of the user who started it and access to the folder: it
// may leave a FIFO, a link or a folder in place of a file, by accident or not. Nothing here
// blocks on a FIFO or follows a link into a foreign file. The content of the files is the
// callers' concern.
package plain

import "errors"

// ErrNotPlain is the error for anything but a regular file.
var ErrNotPlain = errors.New("not a regular file")

// ErrTooLong is the error of Read for a file beyond its limit.
var ErrTooLong = errors.New("too long")
