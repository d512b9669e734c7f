package commands

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/journal"
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

// TestVerifyBeginsWithWhatWasDone: the first line of verify, of its error and of the report is what was ended by what
// is on record, not the targets of a fleet that is larger than they allow. What is older than an hour is not lately.
func TestVerifyBeginsWithWhatWasDone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line  string // before verify
		fault []fake.Fault
		after time.Duration
		says  string
	}{
		"cleaned up":     {"cleanup --stuck --yes", nil, time.Minute, "1 of 1 ended, verified, in the last 1h; 0 stuck"},
		"by name":        {"terminate prod/wait0001 --yes", nil, time.Minute, "1 of 1 ended, verified, in the last 1h; 0 stuck"},
		"by the runbook": {"runbook run sandbox-stuck --yes --max-delete 1", nil, time.Minute, "1 of 1 ended, verified, in the last 1h; 0 stuck"},
		"refused":        {"terminate prod/wait0001 --yes", []fake.Fault{{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "403")}}, time.Minute, "0 of 1 ended, verified, in the last 1h; 1 stuck"},
		"long ago":       {"cleanup --stuck --yes", nil, 2 * time.Hour, "nothing was ended in the last 1h; 0 stuck"},
		"nothing":        {"ls", nil, time.Minute, "nothing was ended in the last 1h; 1 stuck"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			seeds := []fake.Seed{inState("wait0001", time.Hour, sandbox.StateProvisioning)}
			for i := range 6 {
				seeds = append(seeds, running(fmt.Sprintf("prod000%d", i), time.Minute))
			}
			b, p := oneFake(seeds...)
			b.configure(t, "providers:\n  prod: {type: local}\n")
			p.Break(tc.fault...)
			b.run(t, tc.line)
			b.now = func() time.Time { return noon.Add(tc.after) }
			r := b.run(t, "verify -o json")
			assert.Equal(t, 10, r.code, "more run than the target allows")
			b.tty, b.width = true, 80
			r = b.run(t, "verify")
			assert.Equal(t, 10, r.code, "%s%s", r.stdout, r.stderr)
			assert.True(t, strings.HasPrefix(r.stdout, tc.says), r.stdout)
			assert.LessOrEqual(t, strings.Count(r.stdout, "\n"), 12, "a line for each target\n%s", r.stdout)
			if strings.HasPrefix(tc.says, "1 of 1") {
				assert.Contains(t, r.stderr, "sbx: error: "+tc.says)
				b.stdin = ""
				assert.Contains(t, b.run(t, "incident report --since 1h").stdout, "\n\n1 of 1 ended, verified; 0 stuck.\n")
			}
		})
	}
}

// TestVerifyWithoutARecordSaysSo: what could not be read is no proof that nothing was ended.
func TestVerifyWithoutARecordSaysSo(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("prod0001", time.Minute))
	b.adjust = func(d *Deps) {
		d.Journals = func() (journal.Disk, error) { return nil, errors.New("the disk is gone") }
	}
	assert.Regexp(t, `^what was ended in the last 1h is not known: .*the disk is gone; 0 stuck`, b.run(t, "verify").stdout)
	out := b.run(t, "verify -o json").stdout
	assert.Contains(t, out, `"requested": null`)
	assert.Contains(t, out, `"ended": null`)
}
