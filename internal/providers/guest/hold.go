package guest

import (
	"fmt"
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
func HoldArgs(ttl time.Duration) []string { return holdArgs(holdScript, ttl) }

// extendableScript is holdScript that waits on where ExtendScript has written a later time meanwhile.
const extendableScript = `trap 'exit 0' TERM INT; s=$1
while [ "$s" -gt 0 ]
do
  sleep "$s" >/dev/null 2>&1 & wait $!
  s=0; [ ! -r "${HOME:-/tmp}/.sbx/until" ] || { read -r u <"${HOME:-/tmp}/.sbx/until" && s=$((u-$(date +%s))); }
done`

// ExtendableHoldArgs are HoldArgs where an API gives the sandbox a time limit, too, which can be moved: ExtendScript
// moves that of the program. A program inside may write the same, and lives no longer by it.
func ExtendableHoldArgs(ttl time.Duration) []string { return holdArgs(extendableScript, ttl) }

// Extends says that these are ExtendableHoldArgs.
func Extends(args []string) bool { return len(args) > 2 && args[2] == extendableScript }

// holdMargin is how much longer than the time limit of the API an extended program waits, so that it does not end first.
const holdMargin = 5 * time.Second

// ExtendScript is a script that makes the program of ExtendableHoldArgs wait until a time, by the clock inside.
func ExtendScript(until time.Time) string {
	const script = `date +%%s >/dev/null && cd "${HOME:-/tmp}" && mkdir -p .sbx && echo %d >.sbx/until.new && mv -f .sbx/until.new .sbx/until`
	return fmt.Sprintf(script+"\n", until.Add(holdMargin).Unix())
}

func holdArgs(script string, ttl time.Duration) []string {
	return []string{"/bin/sh", "-c", script, "sbx-hold", strconv.FormatInt(int64(math.Ceil(ttl.Seconds())), 10)}
}
