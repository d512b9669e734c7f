package end

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TestAMessageSaysWhatIsLeftAndWhatToType: the sandboxes that were not seen to end, with task and
// cause, their providers and those that did not answer, and the next commands.
func TestAMessageSaysWhatIsLeftAndWhatToType(t *testing.T) {
	t.Parallel()
	judged := func(id, task string, cause sandbox.Cause) cleanup.Judgement {
		return cleanup.Judgement{Sandbox: sandbox.Sandbox{Provider: "prod", ID: id, TaskID: task}, Reason: "stuck", Verdict: triage.Verdict{Cause: cause}}
	}
	r := &cleanupRun{
		env: &ops.Env{Process: process.Process{Args: []string{"sbx"}, Host: "cron-1", Now: time.Now}}, id: "r-1",
		survey: cleanup.Survey{
			Selected: []cleanup.Judgement{judged("a", "T-1", sandbox.CauseLeak), judged("b", "T-2", sandbox.CauseBusyLoop), judged("c", "", sandbox.CauseUnknown)},
			Shares:   []cleanup.Share{{Profile: "prod"}, {Profile: "eu", Err: fault.New(fault.KindUnavailable, "503").At("eu", "list")}},
		},
		recorded: true,
	}
	r.endings = []sandbox.Ending{
		{Ref: sandbox.Ref{Provider: "prod", ID: "a"}, Outcome: sandbox.OutcomeVerified},
		{Ref: sandbox.Ref{Provider: "prod", ID: "b"}, Outcome: sandbox.OutcomeFailed, Reason: "503", Err: fault.New(fault.KindUnavailable, "503")},
	}
	m := r.runMessage(notify.KindPartial, fault.New(fault.KindPartial, "1 of 2"))
	assert.Equal(t, []notify.Item{{Ref: "prod/b", Task: "T-2", Cause: "busy_loop", Outcome: "failed", Reason: "503"}}, m.Items)
	assert.Equal(t, map[string]int{"leak": 1, "busy_loop": 1}, m.Causes)
	assert.Equal(t, []string{"eu", "prod"}, m.Providers)
	assert.Equal(t, []string{"sbx cleanup show r-1", "sbx inspect prod/b", "sbx doctor --provider eu"}, m.Next)
	assert.InDelta(t, 3, m.Figures["selected"], 0)
	assert.InDelta(t, 1, m.Figures["failed"], 0)

	r.endings, r.recorded, r.survey.Shares = nil, false, r.survey.Shares[:1]
	r.rule.Selector.Stuck = true
	m = r.runMessage(notify.KindRefused, fault.New(fault.KindRefused, "too many"))
	assert.Len(t, m.Items, 3, "where nothing was tried, what would end")
	assert.Equal(t, []string{"sbx cleanup --stuck", "sbx inspect prod/a"}, m.Next)
}
