package kubernetes_test

import (
	"os"
	"testing"

	"sbx/internal/testkit/providertest"
)

// The tests mostly wait for programs and polls.
func TestMain(m *testing.M) {
	os.Exit(providertest.Wide{M: m}.Run())
}
