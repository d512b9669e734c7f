package commands

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCompletedRefsShowNoEscapesOfOthers(t *testing.T) {
	t.Parallel()
	evil := running("aaaa", time.Minute)
	evil.Sandbox.Name = "\x1b]0;owned\x07\nprod/fake\tx"
	b, _ := oneFake(evil)
	for _, verb := range []string{"inspect", "terminate", "exec", "logs", "wait", "top"} {
		out := b.runArgs(t, "__complete", verb, "").stdout
		assert.Equal(t, "prod/aaaa\t\\x1b]0;owned\\x07\\nprod/fake\\tx running\n:4\n", out, verb)
	}
}
