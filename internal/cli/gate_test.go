//go:build unix

package cli_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheGatePlaysEveryVerbAndProvider: of the scripts that `go test -short` plays whole, one or more call each verb,
// and one or more stand before each provider.
func TestTheGatePlaysEveryVerbAndProvider(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	skipped := regexp.MustCompile(`(?m)^\[(short|!long|!postgres)\] skip`)
	var gate strings.Builder
	for _, file := range files {
		if text := page(t, "internal/cli/"+file); !skipped.MatchString(text) {
			gate.WriteString(text)
		}
	}
	for _, verb := range tree().Commands() {
		if !verb.Hidden && !verb.IsAdditionalHelpTopicCommand() {
			called := regexp.MustCompile(`\bsbx (-\S+ (\S+ )?)*` + verb.Name() + `\b`).MatchString(gate.String())
			assert.True(t, called, "no script of the gate calls %s", verb.Name())
		}
	}
	for _, provider := range []string{"e2b", "novita", "daytona", "docker", "kubernetes", "vercel", "monotask"} {
		assert.True(t, strings.Contains(gate.String(), "\nremote "+provider), "no script of the gate stands before %s", provider) //nolint:testifylint // the scripts are long
	}
}
