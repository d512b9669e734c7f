package apispec

import (
	"testing"

	"sbx/internal/testkit/wiretest"
)

// LoadFrom is LoadContract with descriptions of a test's own.
func LoadFrom(tb testing.TB, folder, exemptions string, specs ...Spec) *wiretest.Contract {
	tb.Helper()
	return loadContract(tb, folder, exemptions, specs...)
}
