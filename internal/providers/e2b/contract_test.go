package e2b_test

import (
	"path/filepath"
	"testing"

	"sbx/internal/providers/e2b"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/testkit/wiretest/apispec"
)

// TestContract compares every request of the suite, and every answer of the fake, with E2B's
// descriptions.
func TestContract(t *testing.T) {
	t.Parallel()
	contract := apispec.LoadContract(t, filepath.Join("testdata", "contract-exemptions.txt"),
		apispec.Spec{File: "e2b/openapi.yml"}, apispec.Spec{File: "e2b/envd.yaml"})
	readUsageOfMany(t, wiretest.Options{Contract: contract})
	providertest.Run(t, subject(e2b.Type(), e2btest.Options{Wire: wiretest.Options{Contract: contract}}))
}
