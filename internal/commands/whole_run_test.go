package commands

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAWholeRunIsGreen: a run of the runbook that ends all that is stuck and owned is no finding: what it was
// allowed to end was all that its rule selects, and a target without data is met in it as in verify.
func TestAWholeRunIsGreen(t *testing.T) {
	t.Parallel()
	for name, typed := range map[string]string{"by flags": "", "by a person": "1\n"} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(running("prod0001", time.Minute), inState("wait0001", time.Hour, sandbox.StateProvisioning))
			b.configure(t, "providers:\n  prod: {type: local}\n")
			line := "runbook run sandbox-stuck --yes --max-delete 1"
			if typed != "" {
				b.tty, b.width, b.stdin, line = true, 80, typed, "runbook run sandbox-stuck"
			}
			r := b.run(t, line)
			assert.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), 1)
			b.tty = false
			assert.Zero(t, b.run(t, "verify").code, "verify says the same")
			assert.Equal(t, "true", b.verdicts(t)["stuck"], "the run proves its layer")
		})
	}
}
