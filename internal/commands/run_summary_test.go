package commands

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/fake"
	"sbx/internal/views"
)

// TestARunClosesWithOneLine says what became of all, how long it took, where the record is, and
// what to type for those that are left.
func TestARunClosesWithOneLine(t *testing.T) {
	t.Parallel()
	b, p := oneFake(quietHerd("prod", 4)...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	r := b.run(t, "cleanup --older-than 10m --max-fraction 100% --yes --idle-for 2m")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Regexp(t, `(?m)^sbx: 4 terminated in \d+ms; record: sbx cleanup show r-[\w-]+$`, r.stderr)
	assert.NotContains(t, b.run(t, "cleanup --older-than 10m --yes -q").stderr, "terminated in")

	p.Add(quietHerd("again", 3)...)
	p.Break(fake.Fault{Op: fake.OpTerminate, ID: "again0001", Err: fault.New(fault.KindAuth, "403")})
	r = b.run(t, "cleanup --older-than 10m --max-fraction 100% --yes")
	assert.Regexp(t, `(?m)^sbx: 2 terminated, 1 failed in [\d.]+m?s; record: sbx cleanup show r-[\w-]+; `+
		`retry: sbx cleanup --resume r-[\w-]+ --yes$`, r.stderr)
	p.Mend()
	_, line, _ := strings.Cut(r.stderr, "retry: sbx ")
	line, _, _ = strings.Cut(line, "\n")
	again := b.run(t, line)
	assert.Equal(t, 0, again.code, again.stderr)
	assert.Contains(t, again.stdout, "verified prod/again0001", "the printed line does it")
	assert.NotContains(t, b.run(t, "cleanup --older-than 10m --max-fraction 100% --yes -o json").stderr, "record:")
}

func TestTerminateNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	b, p := oneFake(running("aaaa", time.Minute), running("bbbb", time.Minute), running("cccc", time.Minute))
	p.Break(fake.Fault{Op: fake.OpTerminate, ID: "bbbb", Err: fault.New(fault.KindAuth, "403")})
	r := b.run(t, "terminate aaaa bbbb --delete")
	assert.Regexp(t, `(?m)^sbx: 1 terminated, 1 failed in [\d.]+m?s; record: sbx cleanup show r-[\w-]+; retry: sbx terminate --delete prod/bbbb$`, r.stderr)
	assert.NotContains(t, b.run(t, "terminate cccc").stderr, "record:", "the line of one says it all")
}

func TestRetryNamesFewReferences(t *testing.T) {
	t.Parallel()
	var endings []sandbox.Ending
	for _, id := range []string{"a", "b c", "d", "e", "f"} {
		endings = append(endings, sandbox.Ending{Ref: sandbox.Ref{Provider: "p", ID: id}, Outcome: sandbox.OutcomeAccepted})
	}
	assert.Equal(t, "sbx terminate p/a 'p/b c' p/d p/e p/f", views.RetryTerminate(endings, "sbx", nil))
	more := append(endings, sandbox.Ending{Ref: sandbox.Ref{Provider: "p", ID: "g"}, Outcome: sandbox.OutcomeStuck})
	assert.Empty(t, views.RetryTerminate(more, "sbx", nil))
	assert.Empty(t, views.RetryTerminate([]sandbox.Ending{{Outcome: sandbox.OutcomeVerified}}, "sbx", nil))
}

func TestRuleAsFlags(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	assert.Equal(t, "--idle-for 1m", views.RuleText(cleanup.Rule{IdleFor: time.Minute}))
	assert.Equal(t, "--stuck", views.RuleText(cleanup.Rule{Selector: selector.Selector{Stuck: true}}))
	assert.Equal(t, "--state running,paused --older-than 10m --after 2026-11-20T12:00:00Z --name 'a*' --idle-for 2m --label team=x --label keep --delete --unowned",
		views.RuleText(cleanup.Rule{
			Selector: selector.Selector{
				States: []sandbox.State{sandbox.StateRunning, sandbox.StatePaused}, OlderThan: 10 * time.Minute, After: at, Name: "a*",
				Labels: []selector.Label{{Key: "team", Values: []string{"x"}}, {Key: "keep"}},
			},
			IdleFor: 2 * time.Minute, Delete: true, Unowned: true,
		}))
}

// TestCleanupShowHasTheWholeRun: rule, who, when, how long, guards, and then the rows; a pipe gets
// the rows alone.
func TestCleanupShowHasTheWholeRun(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(quietHerd("prod", 8)...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	require.Equal(t, 0, b.run(t, "cleanup --older-than 10m --max-fraction 100% --yes").code)
	pipe := b.run(t, "cleanup show last")
	assert.Regexp(t, `^REF\tOUTCOME\t`, pipe.stdout)
	b.tty, b.width, b.env = true, 80, []string{"NO_COLOR=1"}
	r := b.run(t, "cleanup show last")
	require.Equal(t, 0, r.code, r.stderr)
	golden(t, "cleanup-show", r.stdout, `r-2\d[\w-]+`, `who .*`, `(?m) [\d.]+m?s\b.*$`, `TOOK +`)
	assertFits(t, r.stdout, 80, "")
}

// TestAQuestionStandsBelowWhatItIsAbout: who has not seen a plan sees the sandboxes before the
// question, on stderr.
func TestAQuestionStandsBelowWhatItIsAbout(t *testing.T) {
	t.Parallel()
	b, p := oneFake(quietHerd("prod", 7)...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	b.tty, b.width, b.env, b.stdin = true, 80, []string{"NO_COLOR=1"}, "no\n"
	r := b.run(t, "terminate prod0000 prod0001 prod0002 prod0003 prod0004 prod0005")
	assert.Equal(t, 11, r.code)
	assert.Equal(t, 6, strings.Count(r.stderr, "named by hand; running"), r.stderr)
	assert.Less(t, strings.LastIndex(r.stderr, "prod/prod0005"), strings.Index(r.stderr, "type 6 to terminate them"))
	assert.NotContains(t, r.stdout, "prod/")

	file := filepath.Join(t.TempDir(), "plan.json")
	require.Equal(t, 0, b.run(t, "cleanup --older-than 10m --max-fraction 100% --out "+file).code)
	r = b.run(t, "cleanup --max-fraction 100% --apply "+file)
	assert.Equal(t, 11, r.code)
	assert.Equal(t, 7, strings.Count(r.stderr, "prod/prod"), r.stderr)
	assert.Less(t, strings.LastIndex(r.stderr, "prod/prod0006"), strings.Index(r.stderr, "type 7 to terminate them"))
	assert.Empty(t, p.Calls(fake.OpTerminate))
}
