// Package bubble runs subtests in virtual time. It serves tests alone.
package bubble

import (
	"testing"
	"testing/synctest"
)

// Run runs f as a parallel subtest in a bubble of its own: its clock goes on when everything in it waits.
func Run(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}
