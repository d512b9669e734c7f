package commands

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestRunbookRunAtATerminal shows a line for each step as it ends, the plan before the gate, and a summary at the end.
func TestRunbookRunAtATerminal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		typed string
		code  int
		ended bool
		says  []string
	}{
		"yes":      {typed: "1\n\n", code: 7, ended: true, says: []string{"1 of 1 ended", "ended  1 of 1: 1 busy loop", "now: 6a2 Give the agent limits"}},
		"no":       {typed: "no\nskip\n", code: 10, says: []string{"6a1 Terminate the looping sandboxes  the answer at its gate was no", "ended  0 of 1", "stay   1: your answer was no"}},
		"no more":  {typed: "", code: 11, says: []string{"it waits for an answer", "waiting"}},
		"half way": {typed: "1\n", code: 11, ended: true, says: []string{"1 of 1 ended", "waiting"}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(loop())
			b.configureNothing(t)
			b.tty, b.width, b.stdin = true, 140, tc.typed
			r := b.run(t, "runbook run sandbox-stuck")
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Equal(t, tc.ended, len(p.Calls(fake.OpTerminate)) == 1)
			assert.Contains(t, r.stdout, "1 count                              active: 1")
			assert.Contains(t, r.stdout, "busy loop")
			assert.Contains(t, r.stderr, "prod/loop0001", "the plan")
			for _, text := range tc.says {
				assert.Contains(t, r.stdout, text)
			}
			assert.NotContains(t, r.stdout, "\x1b[2J", "what a sandbox says is escaped")
			assert.NotContains(t, r.stderr, "\x1b[2J")
		})
	}
}

// TestRunbookRunPage is the page of a run on a terminal of 80 columns; -v has the whole trace and all tables.
func TestRunbookRunPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop())
		b.configureNothing(t)
		b.tty, b.width, b.stdin = true, 80, "no\nskip\n"
		r := b.run(t, "runbook run sandbox-stuck")
		golden(t, "runbook-run-page", r.stdout, `b-\w+-\w+`)
		b.stdin = "no\nskip\n"
		r = b.run(t, "runbook run sandbox-stuck -v")
		for _, text := range []string{"done 1 count: Check active sandbox count (took", "  how many are active now? 1", "  condition verify.active_normal", "  STEP ", "Act 6a1 end-loop: sbx terminate"} {
			assert.Contains(t, r.stdout, text)
		}
	})
}

// TestRunbookRunWithoutATerminal: the table has a row for each step, the list of runs one for the run,
// and its status is the same document.
func TestRunbookRunWithoutATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(loop())
		b.configure(t, "providers:\n  prod: {type: local}\n")
		r := b.run(t, "runbook run sandbox-stuck --yes --max-delete 1")
		assert.Equal(t, 7, r.code, r.stderr)
		assert.Contains(t, r.stdout, "\nend-loop\tcause infinite_loop\tdone\ttrue\t")
		assert.Len(t, p.Calls(fake.OpTerminate), 1)
		rows := b.run(t, "runbook runs -o json").list(t, "items")
		require.Len(t, rows, 1)
		assert.Equal(t, "failed", rows[0]["state"])
		status := b.run(t, "runbook status -o json").object(t)
		assert.Equal(t, rows[0]["run_id"], status["run_id"])
		audited := b.run(t, "audit -o json").list(t, "items")
		require.Len(t, audited, 1, "the act is on record as that of the command line")
		assert.Equal(t, "terminate", audited[0]["verb"])
		assert.Equal(t, "prod/loop0001", audited[0]["ref"])
	})
}

func TestRunbookRunRefusesWhatContradictsItself(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"runbook run", "runbook run sandbox-stuck --file x.yaml", "runbook run sandbox-stuck --resume b-1", "runbook run sandbox-stuck --dry-run --yes",
		"runbook run sandbox-stuck --max-delete 0", "runbook run sandbox-stuck --until-ok soon", "runbook run sandbox-stuck --procedure nothing",
		"runbook run sandbox-stuck --production nothing", "runbook run sandbox-stuck --procedure manual-termination",
	} {
		b, p := oneFake(loop())
		b.configureNothing(t)
		r := b.run(t, line)
		assert.Equal(t, 2, r.code, "%s: %s", line, r.stderr)
		assert.Empty(t, p.Calls(fake.OpTerminate), line)
	}
}
