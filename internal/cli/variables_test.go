//go:build unix

package cli_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/config"
)

// TestBrokenVariablesBreakNothingElse runs the whole program with a broken value in
// every variable of the sources.
func TestBrokenVariablesBreakNothingElse(t *testing.T) {
	t.Parallel()
	environ := home(t)
	for _, v := range config.RunVariableRows() {
		environ = append(environ, v.Name+"=")
	}
	shell(t, environ, "sbx ls -q && sbx config path -q && sbx providers -q")
	explained := shell(t, environ, "sbx config explain 2>&1")
	for _, v := range config.RunVariableRows() {
		assert.Contains(t, explained, "env "+v.Name+": is empty")
	}
	assert.Contains(t, shell(t, environ, "sbx doctor 2>&1 || test $? = 10"), "env SANDBOX_CPU: is empty")
}
