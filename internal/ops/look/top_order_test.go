package look

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func TestTopOrders(t *testing.T) {
	t.Parallel()
	usage := func(id, task string, cpu float64, memory int64, growth *float64, v triage.Verdict) SandboxUsage {
		return SandboxUsage{
			Sandbox: sandbox.Sandbox{Provider: "p", ID: id, TaskID: task}, Verdict: v,
			Trend: triage.Trend{CPUPercent: &cpu, MemoryBytes: &memory, MemoryLimitBytes: new(int64(1000)), MemorySlope: growth},
			Last:  sandbox.Usage{Operations: new(memory * 2)},
		}
	}
	unknown := SandboxUsage{Sandbox: sandbox.Sandbox{Provider: "p", ID: "u", TaskID: "t-5"}}
	list := []SandboxUsage{
		unknown,
		usage("busy", "t-1", 90, 100, nil, triage.Verdict{}),
		usage("hint", "t-4", 1, 300, new(2.0), triage.Verdict{Cause: sandbox.CauseLeak, Confidence: sandbox.Hint}),
		usage("leak", "t-3", 2, 950, new(60.0), triage.Verdict{Cause: sandbox.CauseLeak, Confidence: sandbox.Probable}),
		usage("stuck", "t-2", 0, 200, new(-1.0), triage.Verdict{Stuck: sandbox.True, Cause: sandbox.CauseSilent, Confidence: sandbox.Probable}),
	}
	for key, want := range map[string]string{
		"problem": "stuck leak hint busy u", "-problem": "busy u hint leak stuck",
		"cpu": "busy leak hint stuck u", "-cpu": "stuck hint leak busy u",
		"memory": "leak hint stuck busy u", "growth": "leak hint stuck busy u", "-growth": "stuck hint leak busy u",
		"operations": "leak hint stuck busy u", "name": "busy stuck leak hint u", "-name": "u hint leak stuck busy",
	} {
		o, err := ParseTopOrder(key)
		require.NoError(t, err, key)
		o.sortUsage(list)
		var got []string
		for _, u := range list {
			got = append(got, u.Sandbox.ID)
		}
		assert.Equal(t, want, strings.Join(got, " "), key)
	}
	for _, bad := range []string{"", "-", "--cpu", "CPU", "age"} {
		_, err := ParseTopOrder(bad)
		require.Error(t, err, bad)
	}
	_, known := unknown.MemoryShare()
	assert.False(t, known)
}
