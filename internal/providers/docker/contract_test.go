package docker_test

import (
	"path/filepath"
	"testing"

	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/testkit/wiretest/apispec"
)

// TestContract compares every request of the suite, and every answer of the fake, with the description of the
// Engine API that its own Go module has.
func TestContract(t *testing.T) {
	t.Parallel()
	contract := apispec.LoadModuleContract(t, filepath.Join("testdata", "contract-exemptions.txt"), "github.com/moby/moby/api", apispec.Spec{File: "swagger.yaml", Server: "/v1.56"})
	providertest.Run(t, subject(dockertest.Options{API: "1.56", Wire: wiretest.Options{Contract: contract}}))
}
