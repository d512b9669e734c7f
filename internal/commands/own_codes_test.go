package commands

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestAProgramsOwnCodeIsNoFailureOfSbx: a program may exit with the numbers that sbx, a shell or
// a connection uses for its own failures. It ran, so it is not run again, and sbx has no error.
func TestAProgramsOwnCodeIsNoFailureOfSbx(t *testing.T) {
	t.Parallel()
	for _, code := range []int{124, 125, 126, 127, 128, 141, 255} {
		synctest.Test(t, func(t *testing.T) {
			b := newBatchBench(t, "local")
			r := b.runArgs(t, "run", "--attempts", "1", "--", "sh", "-c", "exit "+strconv.Itoa(code))
			assert.Equal(t, code, r.code, r.stderr)
			assert.NotContains(t, r.stderr, "sbx: error", "%d is the program's own", code)
		})
	}
}
