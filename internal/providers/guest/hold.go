package guest

import (
	"math"
	"strconv"
	"time"
)

// DefaultImage is the image of a sandbox for which nobody has named one.
const DefaultImage = "debian:stable-slim"

// holdScript waits until the time limit of the sandbox, $1 in seconds, and ends at once when it is told to.
const holdScript = `trap 'exit 0' TERM INT; sleep "$1" >/dev/null 2>&1 & wait $!`

// HoldArgs is the main program of a sandbox that runs its programs beside it, and that ends after ttl: where a
// sandbox ends with its main program, and no API gives it a time limit.
func HoldArgs(ttl time.Duration) []string {
	return []string{"/bin/sh", "-c", holdScript, "sbx-hold", strconv.FormatInt(int64(math.Ceil(ttl.Seconds())), 10)}
}
