package guest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers/guest"
)

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		code          int
		program, said string
		want          fault.Kind
	}{
		{127, "nosuch", "sh: 1: exec: nosuch: not found\n", fault.KindCommandNotFound},
		{127, "nosuch", "bash: line 1: nosuch: command not found\n", fault.KindCommandNotFound},
		{127, "/opt/Agent", "sh: /opt/Agent: No such file or directory\n", fault.KindCommandNotFound},
		{127, "nosuch", `exec: "nosuch": executable file not found in $PATH`, fault.KindCommandNotFound},
		{127, "nosuch", "nice: ‘nosuch’: No such file or directory\n", fault.KindCommandNotFound},
		{127, "nosuch", "nice: 'nosuch': No such file or directory\n", fault.KindCommandNotFound},
		{126, "/etc/passwd", "sh: 1: exec: /etc/passwd: Permission denied\n", fault.KindNotExecutable},
		{126, "/opt", "sh: /opt: is a directory\n", fault.KindNotExecutable},
		{127, "sh", "sh: 1: nosuch: not found\n", fault.KindNone},
		{127, "agent", "agent: it ended with 127\n", fault.KindNone},
		{127, "agent", "npm: not found\n", fault.KindNone},
		{126, "sh", "sh: 1: /etc/passwd: Permission denied\n", fault.KindNone},
		{1, "nosuch", "nosuch: not found\n", fault.KindNone},
		{127, "nosuch", "", fault.KindNone},
	} {
		assert.Equal(t, tc.want, fault.KindOf(guest.NotStarted(tc.code, tc.program, tc.said)), "%d %s %q", tc.code, tc.program, tc.said)
	}
}
