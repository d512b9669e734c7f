//go:build !unix

package publish

import (
	"os"
	"strconv"

	"sbx/internal/sandbox"
)

// exitOf has a code alone: there are no signals here.
func exitOf(state *os.ProcessState) sandbox.Exit {
	code := state.ExitCode()
	return sandbox.Exit{Code: &code, Raw: strconv.Itoa(code)}
}
