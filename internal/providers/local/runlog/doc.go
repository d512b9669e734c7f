// Package runlog is a local sandbox's output on disk: a Writer into which the supervisor
// copies the program's output, and Read for all others.
//
// The output is in two files of the sandbox's directory, output.log and the older
// output.log.1, in the line format of Kubernetes container logs, which other tools can read:
//
//	<RFC 3339 time, UTC> stdout|stderr F|P <bytes>\n
//
// A file after a rotation begins with a line that says how much output was stored before it
// (see appendHead), so that a reader knows what rotation has removed.
//
// F is a full line or the end of one, P a part of a line that continues in the next record of
// the same stream.
//
// The program must never wait for a failing disk, so the Writer returns no errors: what cannot
// be stored is counted and dropped. The meaning of a line (patterns, escapes, redaction) does
// not belong here, nor does anything that costs the supervisor memory.
package runlog

import "path/filepath"

const (
	currentName = "output.log"
	olderName   = "output.log.1"
)

func currentPath(dir string) string { return filepath.Join(dir, currentName) }

func olderPath(dir string) string { return filepath.Join(dir, olderName) }
