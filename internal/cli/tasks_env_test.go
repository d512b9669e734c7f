package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAPublishCommandGetsNoCredentialsOfProviders under their own names, nor under
// another.
func TestAPublishCommandGetsNoCredentialsOfProviders(t *testing.T) {
	t.Parallel()
	environ := []string{
		"PATH=/bin", "E2B_API_KEY=e2b_1", "DAYTONA_API_KEY=dtn_1", "VERCEL_TOKEN=v", "MONOTASK_TOKEN=m", "OMOIOS_TOKEN=o", "NOVITA_API_KEY=n",
		"MY_KEY=sk_of_a_profile", "NPM_TOKEN=of-the-operator", "EMPTY=",
	}
	assert.Equal(t, []string{"PATH=/bin", "NPM_TOKEN=of-the-operator", "EMPTY="}, withoutSecrets(environ, Types(), []string{"sk_of_a_profile", ""}))
	assert.Contains(t, environ, "E2B_API_KEY=e2b_1", "what was given stays")
}
