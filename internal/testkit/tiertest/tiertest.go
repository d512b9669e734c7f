// Package tiertest says which test runs play a test. There are three, each a superset of the one before:
//
//	go test -short ./...             the gate: it decides what lands, and is short
//	go test ./...                    the command of the README: what passes on any machine, however busy
//	SBX_TEST_LONG=1 go test ./...    the stage `realtime` of .ci/run: also what needs the real clock below a
//	                                 minute, a share of a core, a second build or each case of a matrix
//
// A test that one of them leaves out says why, in one line: docs/TESTING.md lists these lines. That a test was
// red once is no reason: such a test waits for a state instead of a time.
//
// Only tests use this room. It holds no helper for anything but the choice of a run and its limits in time.
package tiertest

import (
	"os"
	"testing"
	"time"
)

// SkipShort leaves a test out of the gate. why is a line of docs/TESTING.md.
func SkipShort(tb testing.TB, why string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short: " + why)
	}
}

// SkipUnlessLong leaves a test to the stage `realtime`. why is a line of docs/TESTING.md.
func SkipUnlessLong(tb testing.TB, why string) {
	tb.Helper()
	if !IsLong(why) {
		tb.Skip("SBX_TEST_LONG is not set: " + why)
	}
}

// IsLong reports whether tests may play all cases of a matrix of which other runs play a covering part. why says
// which part that is: a line of docs/TESTING.md.
func IsLong(_ string) bool {
	return os.Getenv("SBX_TEST_LONG") != "" //nolint:forbidigo // for tests only
}

// patience is the limit of a wait where the test run has none (go test -timeout 0).
const patience = 20 * time.Minute

// Limit is the longest that a test waits for a state: until a minute before its run is ended (go test -timeout), so
// that a busy machine makes a test slow and not red, and a state that never comes is reported with its test's name.
func Limit(tb testing.TB) time.Duration {
	tb.Helper()
	t, ok := tb.(interface{ Deadline() (time.Time, bool) }) // a benchmark has none
	if !ok {
		return patience
	}
	end, ok := t.Deadline()
	if !ok {
		return patience
	}
	return max(time.Until(end)-time.Minute, time.Minute)
}
