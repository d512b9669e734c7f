package e2b_test

import (
	"path/filepath"
	"testing"

	"sbx/internal/providers/e2b"
	"sbx/internal/providers/e2b/e2btest"
	"sbx/internal/providers/providertest"
	"sbx/internal/providers/wiretest"
)

// TestContract compares every request of the suite, and every answer of the fake, with E2B's
// descriptions.
func TestContract(t *testing.T) {
	t.Parallel()
	contract := wiretest.LoadContract(t, filepath.Join("testdata", "contract-exemptions.txt"),
		wiretest.Spec{File: "e2b/openapi.yml"}, wiretest.Spec{File: "e2b/envd.yaml"})
	providertest.Run(t, subject(e2b.Type(), e2btest.Options{Wire: wiretest.Options{Contract: contract}}))
}
