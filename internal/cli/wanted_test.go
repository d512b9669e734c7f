package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/process"
)

func TestAskedFormat(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                            "",
		"ls":                          "",
		"ls -o json":                  "json",
		"ls -ojson":                   "json",
		"ls -o=json":                  "json",
		"ls --output json":            "json",
		"ls --output=json":            "json",
		"--bogus -o yaml ls":          "yaml",
		"ls -o csv -o json":           "json",
		"ls -o":                       "",
		"ls --older-than 1h":          "",
		"ls --only x":                 "",
		"exec REF -- ls -o json":      "",
		"exec -o yaml REF -- -o json": "yaml",
	} {
		assert.Equal(t, want, askedFormat(append([]string{"sbx"}, strings.Fields(line)...)), line)
	}
	assert.Empty(t, askedFormat(nil))
}

func TestWrongUseIsOneObjectWhereJSONIsAskedFor(t *testing.T) {
	t.Parallel()
	for line, structured := range map[string]bool{
		"ls --bogus -o json":            true,
		"ls -o json --bogus":            true,
		"--bogus ls --output=ndjson":    true,
		"nosuchverb -o json":            true,
		"ls extra -o json":              true,
		"ls --older-than= -o json":      true,
		"ls --bogus":                    false,
		"ls --bogus -o jsn":             false,
		"exec REF --bogus -- ls -ojson": false,
	} {
		var out, errs bytes.Buffer
		code := Run(process.Process{
			Args: append([]string{"sbx"}, strings.Fields(line)...), Home: t.TempDir(),
			Stdout: process.Stream{Writer: &out}, Stderr: process.Stream{Writer: &errs},
		}, nil)
		assert.Equal(t, 2, code, line)
		assert.Empty(t, out.String(), line)
		if !structured {
			assert.True(t, strings.HasPrefix(errs.String(), "sbx: error: "), line+": "+errs.String())
			continue
		}
		var object struct {
			Error struct {
				Kind string `json:"kind"`
			} `json:"error"`
			ExitCode int `json:"exit_code"`
		}
		require.NoError(t, json.Unmarshal(errs.Bytes(), &object), line+": "+errs.String())
		assert.Equal(t, "usage", object.Error.Kind, line)
		assert.Equal(t, 2, object.ExitCode, line)
	}
}
