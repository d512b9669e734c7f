package sandbox

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMetadataIsReadOnce, in one order: what the provider says, what sbx has written,
// then the keys as they are listed.
func TestMetadataIsReadOnce(t *testing.T) {
	t.Parallel()
	m := Metadata{Task: []string{"job", "task_id"}, AgentType: []string{"kind"}, Owner: []string{"team"}}
	for name, tc := range map[string]struct {
		is                 Sandbox
		task, agent, owner string
	}{
		"nothing":                 {Sandbox{}, "", "", ""},
		"the first that is there": {Sandbox{Labels: map[string]string{"task_id": "2", "kind": "coder", "team": "a"}}, "2", "coder", "a"},
		"in their order":          {Sandbox{Labels: map[string]string{"task_id": "2", "job": "1"}}, "1", "", ""},
		"an empty one is none":    {Sandbox{Labels: map[string]string{"task_id": "2", "job": ""}}, "2", "", ""},
		"sbx's own before":        {Sandbox{Labels: map[string]string{"job": "1", LabelTask: "t-1", LabelAgentType: "x", "kind": "y", LabelOwner: "me", "team": "a"}}, "t-1", "x", "me"},
		"the provider's before":   {Sandbox{TaskID: "p", AgentType: "q", Labels: map[string]string{"job": "1", "kind": "y"}}, "p", "q", ""},
		"keys of others":          {Sandbox{Labels: map[string]string{"agent_type": "y", "owner": "z"}}, "", "", ""},
	} {
		got := m.Read(tc.is)
		assert.Equal(t, []string{tc.task, tc.agent, tc.owner}, []string{got.TaskID, got.AgentType, got.Owner}, name)
		assert.Equal(t, tc.is.Labels, got.Labels, name)
	}
}
