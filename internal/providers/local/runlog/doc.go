// Package runlog is a local sandbox's output on disk: a Writer that the
// supervisor drains the program into, and Read for everyone else.
//
// The output lies in two files of the sandbox's directory, output.log and the
// older output.log.1, in the line format of Kubernetes container logs, so that
// other tools read them too:
//
//	<RFC 3339 time, UTC> stdout|stderr F|P <bytes>\n
//
// A file that follows others begins with a line that says how much output was stored
// before it (see appendHead), so that a reader knows what rotation has removed.
//
// F is a full line or the end of one, P a part whose line goes on in the next
// record of the same stream.
//
// The program must never wait for the disk to become well, so the Writer
// returns no errors: what cannot be stored is counted and let go. What a line
// means (patterns, escapes, redaction) does not enter this room, nor does
// anything that costs the supervisor memory: the standard library, and
// fsnotify for following only.
package runlog

import "path/filepath"

const (
	currentName = "output.log"
	olderName   = "output.log.1"
)

func currentPath(dir string) string { return filepath.Join(dir, currentName) }

func olderPath(dir string) string { return filepath.Join(dir, olderName) }
