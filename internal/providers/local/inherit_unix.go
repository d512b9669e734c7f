//go:build unix

package local

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepFilesHere has every file that this process has open closed in the
// processes that it starts, unless one is passed on purpose. What whoever called
// sbx left open, a lock of a cron line or the pipe that a build waits on, would
// else stay open for as long as the sandbox lives.
func keepFilesHere() {
	if closeOnExecFrom(firstInherited) == nil {
		return
	}
	entries, _ := os.ReadDir("/dev/fd") // without it the files go on, which harms nothing but who waits for them
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstInherited {
			unix.CloseOnExec(fd)
		}
	}
}

// firstInherited is the first descriptor after the three standard ones.
const firstInherited = 3
