package commands

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"sbx/internal/testkit/fake"
)

// TestAPlanNamesTheNextLine: a plan that cannot be answered is followed by the line that can.
func TestAPlanNamesTheNextLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		boxes      int
		line, says string
	}{
		"a guard refuses":      {25, "cleanup --older-than 10m --max-fraction 100%", "to terminate them all: `sbx cleanup --older-than 10m --max-fraction 100% --max-delete 25`"},
		"two guards refuse":    {25, "cleanup --older-than 10m --max-delete=3", "`sbx cleanup --older-than 10m --max-delete 25 --max-fraction 100%`"},
		"no rule was typed":    {4, "cleanup", "to terminate them: `sbx cleanup --stuck`"},
		"the answer is no":     {4, "cleanup --older-than 10m", "type 4 to terminate them, anything else to cancel: "},
		"nothing was answered": {4, "cleanup --older-than 10m", "sbx: nothing was done\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := oneFake(quietHerd("prod", tc.boxes)...)
			b.configure(t, "providers:\n  prod: {type: local, owned: all}\n")
			b.tty, b.width = true, 200
			r := b.run(t, tc.line)
			assert.Equal(t, 0, r.code, r.stderr)
			assert.Contains(t, r.stderr, tc.says)
			assert.Empty(t, p.Calls(fake.OpTerminate), "it is a plan")
		})
	}
}

// TestAPlanNamesTheLineForWhatNobodyOwns, which takes it once and changes no configuration.
func TestAPlanNamesTheLineForWhatNobodyOwns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := switchedOn(t, 4, nil)
		b.tty, b.width = true, 200
		r := b.run(t, "cleanup --stuck")
		assert.Contains(t, r.stdout, "0 of 4 can be ended: none of them is yours (cloud 4).")
		assert.Contains(t, r.stdout, "end them once    `sbx cleanup --stuck --unowned`")
		assert.Contains(t, r.stdout, "make them yours  `sbx config own --provider cloud --all`")
		b.stdin = "4\n"
		r = b.run(t, "cleanup --stuck --unowned")
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Len(t, p.Calls(fake.OpTerminate), 4)
		assert.Contains(t, r.stderr, "4 terminated in ")
	})
}
